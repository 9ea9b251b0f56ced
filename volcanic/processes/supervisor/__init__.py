"""Supervisor of child processes: starts them in order, restarts them when they die, and ends them with their parent.

`Spec` describes a program, `Supervisor` keeps a list of programs alive. The small program `launch` starts each child
and ties the child's life to its parent's. Nothing here knows Django or the purpose of the children.
"""

from volcanic.processes.supervisor.child import Child, Emit, GaveUp
from volcanic.processes.supervisor.group import Supervisor
from volcanic.processes.supervisor.spec import Spec

__all__ = ["Child", "Emit", "GaveUp", "Spec", "Supervisor"]

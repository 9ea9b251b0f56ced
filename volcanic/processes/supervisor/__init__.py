"""Runs child processes for as long as their parent lives: in order, restarted when they die, leaving none behind.

`Spec` says what to run, `Supervisor` keeps a list of them alive, `launch` is the small program between us and each
child which ties the child's life to ours. Knows nothing of Django or of what the children are.
"""

from volcanic.processes.supervisor.child import Child, Emit, GaveUp
from volcanic.processes.supervisor.group import Supervisor
from volcanic.processes.supervisor.spec import Spec

__all__ = ["Child", "Emit", "GaveUp", "Spec", "Supervisor"]

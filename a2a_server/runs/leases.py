"""Leases of tasks: this worker process's side of the runs that it holds."""

from a2a_server.services import Run
from volcanic.turns.leases import LeaseKind, LocalRun

LEASES = LeaseKind("task", "a2a_server_task", "working", "uuid")


def local_run(run: Run) -> LocalRun:
    """Returns this process's side of a run, for `volcanic.turns.leases.kept`."""
    return LocalRun(LEASES, run.task_id, run.attempt)

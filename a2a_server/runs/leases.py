"""The leases of tasks: how this process keeps the runs of tasks that it holds."""

from a2a_server.services import Run, leases_renew, runs_lost
from volcanic.turns.leases import LeaseKind, LocalRun

_LEASES = LeaseKind("task", leases_renew, runs_lost)


def local_run(run: Run) -> LocalRun:
    """Returns this process's side of a run, for `volcanic.turns.leases.kept`."""
    return LocalRun(_LEASES, run.task_id, run.attempt)

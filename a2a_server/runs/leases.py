"""Leases of task runs: connects the runs of this process to the lease keeper of `volcanic.turns.leases`."""

from a2a_server.services import Run, leases_renew, runs_lost
from volcanic.turns.leases import LeaseKind, LocalRun

_LEASES = LeaseKind("task", leases_renew, runs_lost)


def local_run(run: Run) -> LocalRun:
    """Returns the LocalRun of a run in this process, for `volcanic.turns.leases.kept`."""
    return LocalRun(_LEASES, run.task_id, run.attempt)

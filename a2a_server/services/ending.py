"""The verbs that end a task from outside of its run: cancel, expire, sweep, and read, which may find that it ended."""

import uuid
from datetime import timedelta

from django.db import connection, transaction
from django.utils import timezone

from a2a_server import queries, selectors
from a2a_server.errors import NotCancelable
from a2a_server.models import TaskState
from a2a_server.selectors import TaskView
from a2a_server.services.transitions import task_enqueue, task_move
from trust.services import reviews_void
from volcanic.turns.leases import SERVER_RESTARTED

MAX_RETRIES = 3


def task_read(*, task_id: uuid.UUID, caller_id: int) -> TaskView:
    """Returns a caller's task. One whose worker is gone has failed by the time it is read.

    One statement, unless it had to fail the task. Raises TaskNotFound.
    """
    task = selectors.task_get(task_id=task_id, caller_id=caller_id)
    if task.lease_passed:
        task_expire(task_id=task_id)
        task = selectors.task_get(task_id=task_id, caller_id=caller_id)
    return task


def task_cancel(*, task_id: uuid.UUID, caller_id: int) -> TaskView:
    """Cancels a caller's task, whatever it is doing: its worker notices within a second and writes nothing more.

    What waits for the owner is void. Raises TaskNotFound, or NotCancelable when the task has ended.
    """
    was = task_move(task_id, TaskState.CANCELED, caller=caller_id)
    if was is None:
        task = task_read(task_id=task_id, caller_id=caller_id)
        raise NotCancelable(f"The task has ended already ({task.state.value}).")
    # After it and apart: a decision takes the review first and then the task, so that holding both here could lock
    # the two out. Should this process die in between, the decision finds the task canceled.
    begun = was is TaskState.WORKING
    reviews_void(task=task_id, reason="The task was canceled.", approved=not begun)
    return selectors.task_get(task_id=task_id, caller_id=caller_id)


def task_expire(*, task_id: uuid.UUID) -> bool:
    """Ends the run of a task whose lease has passed, since its worker is gone: working → failed, or for a run that only
    reads → submitted, MAX_RETRIES times at most. Returns whether this call did."""
    now = timezone.now()
    working = [TaskState.WORKING]
    again = task_move(
        task_id, TaskState.SUBMITTED, only_from=working, now=now, lease_before=now, max_retries=MAX_RETRIES
    )
    if again is not None:
        transaction.on_commit(lambda: task_enqueue(task_id))
        return True
    return task_move(task_id, TaskState.FAILED, text=SERVER_RESTARTED, now=now, lease_before=now) is not None


def tasks_sweep(*, unclaimed_after: timedelta = timedelta(seconds=5), limit: int = 500) -> tuple[int, int]:
    """Fails runs whose worker is gone and sends again the messages of submitted tasks that nobody claimed.

    Returns how many of each.
    """
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(queries.RUNS_EXPIRED, {"now": now, "limit": limit})
        expired = [row[0] for row in cursor.fetchall()]
        cursor.execute(queries.UNCLAIMED_TAKE, {"now": now, "before": now - unclaimed_after, "limit": limit})
        unclaimed = [row[0] for row in cursor.fetchall()]
    failed = sum(task_expire(task_id=task_id) for task_id in expired)
    for task_id in unclaimed:
        task_enqueue(task_id)
    return failed, len(unclaimed)

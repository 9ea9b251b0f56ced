"""The services that end a task from outside of its run: cancel, expire and sweep.

Reading a task belongs here too, since reading fails a task whose lease has passed.
"""

import uuid
from datetime import timedelta

from django.db import connection, transaction
from django.utils import timezone

from a2a_server import selectors
from a2a_server.errors import NotCancelable
from a2a_server.models import TaskState
from a2a_server.selectors import TaskView
from a2a_server.services.transitions import task_enqueue, task_move
from trust.services import reviews_void
from volcanic.turns.leases import SERVER_RESTARTED

MAX_RETRIES = 3

# Takes submitted tasks whose Celery message seems lost. Taking a task sets its enqueued_at,
# and SKIP LOCKED passes over rows that another sweep holds, so that two sweeps don't take the same task.
_UNCLAIMED_TAKE = """
    UPDATE a2a_server_task SET enqueued_at = %(now)s
    WHERE id IN (
        SELECT id FROM a2a_server_task
        WHERE state = 'submitted' AND enqueued_at < %(before)s
        ORDER BY enqueued_at LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED)
    RETURNING id
"""

# Finds working tasks whose lease has passed. A plain read: the sweep expires each task by
# TASK_TRANSITION, which checks the lease again.
_RUNS_EXPIRED = """
    SELECT id FROM a2a_server_task WHERE state = 'working' AND lease_expires_at < %(now)s LIMIT %(limit)s
"""


def task_read(*, task_id: uuid.UUID, caller_id: int) -> TaskView:
    """Returns a caller's task. A working task whose lease has passed is expired first, since its worker is gone.

    One statement, unless the task had to be expired. Raises TaskNotFound.
    """
    task = selectors.task_get(task_id=task_id, caller_id=caller_id)
    if task.lease_passed:
        task_expire(task_id=task_id)
        task = selectors.task_get(task_id=task_id, caller_id=caller_id)
    return task


def task_cancel(*, task_id: uuid.UUID, caller_id: int) -> TaskView:
    """Cancels a caller's task and returns it. The task may be in any state that is not terminal.

    The worker of a running task notices within a second and writes nothing more. A review of the task that waits for
    the owner becomes void. Raises TaskNotFound, or NotCancelable when the task has ended.
    """
    was = task_move(task_id, TaskState.CANCELED, caller=caller_id)
    if was is None:
        task = task_read(task_id=task_id, caller_id=caller_id)
        raise NotCancelable(f"The task has ended already ({task.state.value}).")
    # In a transaction of its own, after the task's. A decision locks the review first and then the task, so locking
    # both here in the other order could deadlock. Should this process die in between, a decision finds the task
    # canceled, and the sweep ends the review.
    begun = was is TaskState.WORKING
    reviews_void(task=task_id, reason="The task was canceled.", approved=not begun)
    return selectors.task_get(task_id=task_id, caller_id=caller_id)


def task_expire(*, task_id: uuid.UUID) -> bool:
    """Ends the run of a task whose lease has passed, since its worker is gone. Returns whether this call ended it.

    working → submitted for a run that only reads, with MAX_RETRIES retries at most; working → failed for all others.
    """
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
    """Expires runs whose lease has passed, and sends the Celery messages of unclaimed submitted tasks again.

    A task is unclaimed when its last message is older than `unclaimed_after`. Handles at most `limit` tasks of each
    kind. Returns the numbers of runs expired and of messages sent.
    """
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(_RUNS_EXPIRED, {"now": now, "limit": limit})
        expired = [row[0] for row in cursor.fetchall()]
        cursor.execute(_UNCLAIMED_TAKE, {"now": now, "before": now - unclaimed_after, "limit": limit})
        unclaimed = [row[0] for row in cursor.fetchall()]
    failed = sum(task_expire(task_id=task_id) for task_id in expired)
    for task_id in unclaimed:
        task_enqueue(task_id)
    return failed, len(unclaimed)

"""Signal receivers: apply the owner's decisions, sent by `trust`, to the tasks, inside of the sender's transaction."""

from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.dispatch import receiver

from a2a_server.models import Task, TaskState
from a2a_server.runs.approvals import NO_LONGER
from a2a_server.services import task_answer, task_ask, task_reject, task_resume, task_stop
from trust.errors import TaskOvertakenError
from trust.models import CHAT, Review
from trust.services import reviews_void
from trust.signals import grant_revoked, review_decided, review_voided
from volcanic.a2a_json import response_artifact

DECLINED = "The owner declined this request."


@receiver(review_decided)
def apply_decision(*, review: Review, **_kwargs: Any) -> None:
    """Moves the task as the owner decided. Raises TaskOvertakenError when the task no longer waits.

    The error undoes the decision too, since both are in one transaction.
    """
    task_id, text = review.task, review.decision_text
    match review.state:
        case Review.State.APPROVED:
            # None: another task runs in the same context. The sweep resumes this task when that one has ended.
            moved = task_resume(task_id=task_id) is not False
        case Review.State.REPLIED:
            artifact = response_artifact(text)
            moved = task_answer(task_id=task_id, request=review.request, reply=text, artifact=artifact)
        case Review.State.ASKED:
            moved = task_ask(task_id=task_id, question=text)
        case Review.State.DECLINED | Review.State.EXPIRED:
            moved = task_reject(task_id=task_id, text=text or DECLINED)
        case _:
            raise AssertionError(review.state)
    if not moved:
        raise TaskOvertakenError(_what_became(review))


@receiver(review_voided)
def end_void(*, review: Review, **_kwargs: Any) -> None:
    """Rejects the task of a void review, if the task still waits."""
    task_reject(task_id=review.task, text=NO_LONGER)


@receiver(grant_revoked)
def stop_runs(*, caller_id: int, skill: str, stop: bool, **_kwargs: Any) -> None:
    """Cancels the runs under a revoked grant, if the owner says so.

    Canceling happens after commit. A claim locks the task and then the caller, and the revoking transaction may hold
    the caller's lock already, so locking tasks inside of it could deadlock.
    """
    if stop:
        transaction.on_commit(lambda: _stop_each(caller_id, "" if skill == CHAT else skill))


def _stop_each(caller_id: int, skill: str) -> None:
    # Runs that only read for the owner have no pending report, and approved runs have a review: neither uses the grant.
    approved = Review.objects.filter(task=OuterRef("pk"))
    running = Task.objects.filter(~Exists(approved), caller_id=caller_id, state=TaskState.WORKING, skill=skill)
    running = running.exclude(pending_report="")
    for task_id in running.values_list("pk", flat=True):
        task_stop(task_id=task_id)


_APPROVED_AND_WAITING = """
    SELECT task.id FROM a2a_server_task AS task JOIN trust_review AS review ON review.task = task.id
    WHERE task.state = 'auth_required' AND review.state = 'approved' AND NOT EXISTS (
        SELECT FROM a2a_server_task AS busy
        WHERE busy.session_id = task.session_id AND busy.state IN ('submitted', 'working'))
    ORDER BY review.decided_at LIMIT 100
"""
_ORPHANED = """
    SELECT review.task FROM trust_review AS review LEFT JOIN a2a_server_task AS task ON task.id = review.task
    WHERE review.state IN ('pending', 'asked')
      AND (task.id IS NULL OR task.state IN ('completed', 'failed', 'canceled', 'rejected'))
    LIMIT 100
"""


def approved_resume() -> int:
    """Has approved tasks run whose context was busy when the owner approved them. Returns their number, at most 100."""
    with connection.cursor() as cursor:
        cursor.execute(_APPROVED_AND_WAITING)
        rows = cursor.fetchall()
    return sum(bool(task_resume(task_id=task_id)) for (task_id,) in rows)


def orphaned_reviews_void() -> int:
    """Voids reviews that wait although their task has ended. Returns their number, at most 100.

    Such a review is left when the process that ended the task died before it could void the review.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ORPHANED)
        rows = cursor.fetchall()
    return sum(reviews_void(task=task_id, reason="The task has ended.") for (task_id,) in rows)


def _what_became(review: Review) -> str:
    state = Task.objects.filter(pk=review.task).values_list("state", flat=True).first()
    if state is None:
        return "The task no longer exists."
    if state == TaskState.CANCELED:
        return "The caller canceled the task."
    return f"The task no longer waits for you: it is {TaskState(state).label.lower()}."

"""Approvals: the check that a run is still the one that the owner approved, and the end of a run that is not."""

from django.db import transaction

from a2a_server.models import TaskState
from a2a_server.services import Run, task_settle
from trust.digests import digest_of
from trust.models import Level, Review, Skill
from trust.services import review_ask_again, review_void

PASSED_ON = (
    "Your request has been passed to the owner of this assistant. The answer comes in this task when they have "
    "decided: keep a stream, a webhook or a poll on it."
)
NO_LONGER = "The owner no longer takes this request."
DISABLED = "The owner has disabled this agent."
KEY_REVOKED = "A key that a message of this task came with was revoked."


def review_of(run: Run) -> Review | None:
    """Returns the review of a run's task, or None. A task without a review needs no statement."""
    if run.review_id is None:
        return None
    return Review.objects.select_related("caller", "draft").filter(pk=run.review_id).first()


def is_approved(run: Run, review: Review | None) -> bool:
    """Returns whether the owner approved the run's message. An approval does not hold for messages that came later."""
    if review is None or review.state != Review.State.APPROVED:
        return False
    return review.message_count == run.history_length


def problem(run: Run, review: Review, skill: Skill | None) -> str:
    """Returns the reason why an approval no longer holds, "" for an approval that holds. The owner reads the reason."""
    if digest_of(review, skill) != review.digest:
        return "The request or its skill has changed since you approved it."
    if run.level.rank < Level(review.level).rank:
        return "The caller's level was lowered after you approved the request."
    return ""


def turn_away(run: Run, review: Review | None, reason: str) -> None:
    """Rejects a request that may not run at all, with `reason` as the status message.

    A review of the request becomes void, also an approved one. Changes nothing if the run lost its task.
    """
    with transaction.atomic():
        if review is not None:
            review_void(review, reason, states=[*Review.WAITING, Review.State.APPROVED])
        if not task_settle(run=run, state=TaskState.REJECTED, text=reason):
            transaction.set_rollback(True)


def ask_again(run: Run, review: Review, note: str) -> None:
    """Puts an approved request before the owner again with `note`: working → auth_required.

    Changes nothing if the run lost its task or the review was decided otherwise meanwhile.
    """
    with transaction.atomic():
        asked = review_ask_again(review=review, note=note)
        if not asked or not task_settle(run=run, state=TaskState.AUTH_REQUIRED, text=PASSED_ON):
            transaction.set_rollback(True)

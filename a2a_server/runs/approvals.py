"""Whether a run is what the owner approved."""

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
    """Returns the review of a run's task. No statement where there is none."""
    if run.review_id is None:
        return None
    return Review.objects.select_related("caller", "draft").filter(pk=run.review_id).first()


def is_approved(run: Run, review: Review | None) -> bool:
    """Tells whether the owner approved this message: not one that came after the decision."""
    if review is None or review.state != Review.State.APPROVED:
        return False
    return review.message_count == run.history_length


def problem(run: Run, review: Review, skill: Skill | None) -> str:
    """Returns why an approval no longer holds for what would run now, "" if it does."""
    if digest_of(review, skill) != review.digest:
        return "What would be done is no longer what you approved."
    if run.level.rank < Level(review.level).rank:
        return "The caller's level was lowered after you approved it."
    return ""


def turn_away(run: Run, review: Review | None, reason: str) -> None:
    """Rejects a request of which nothing may run; the review is void, if there is one, whatever was decided."""
    with transaction.atomic():
        if review is not None:
            review_void(review, reason, states=[*Review.WAITING, Review.State.APPROVED])
        if not task_settle(run=run, state=TaskState.REJECTED, text=reason):
            transaction.set_rollback(True)


def ask_again(run: Run, review: Review, note: str) -> None:
    """Puts an approved request before the owner again, and the task back to waiting for them."""
    with transaction.atomic():
        asked = review_ask_again(review=review, note=note)
        if not asked or not task_settle(run=run, state=TaskState.AUTH_REQUIRED, text=PASSED_ON):
            transaction.set_rollback(True)

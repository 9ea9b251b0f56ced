"""The owner's decision on a review: taken once, bound to the content shown, done completely or not at all."""

from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from trust.audit import audit
from trust.errors import (
    DraftDecidedError,
    ReviewChangedError,
    ReviewDecidedError,
    ReviewError,
    ReviewVoidError,
    TaskOvertakenError,
)
from trust.models import CHAT, CallerKey, Grant, Level, Observation, Review
from trust.owner_events import review_changed
from trust.services.callers import grant_add
from trust.services.reviews import ABOUT_REVIEWS, CALLER, OWNER, review_digest, review_void, thread_entry
from trust.signals import review_decided
from volcanic import acting
from volcanic.celery import publish
from volcanic.services import notifications_settle
from volcanic.text import clean_text

Decision = Observation.Decision
State = Review.State

_STATES = {
    Decision.APPROVE: State.APPROVED,
    Decision.GRANT: State.APPROVED,
    Decision.REPLY: State.REPLIED,
    Decision.ASK: State.ASKED,
    Decision.DECLINE: State.DECLINED,
}
# The decisions that a review can get. The others are about requests that were done without the owner.
DECISIONS = tuple(_STATES)
_NEEDS_TEXT = {Decision.REPLY: "Write the reply.", Decision.ASK: "Write the question."}
MAX_TEXT = 20_000


def review_decide(*, review_id: int, decision: Decision, digest: str, text: str = "") -> Review:
    """Takes the owner's decision. The task goes on, is answered or ends in the same transaction.

    `digest` names the content that was shown. `text` is the owner's instruction, reply, question or reason. If several
    decisions race, one of them is taken. Returns the review as decided.

    Raises ValidationError if the text is missing or too long, ReviewDecidedError if the review was decided before or
    its time has passed, ReviewChangedError if the content has changed since it was shown, and ReviewVoidError if the
    review is void.
    """
    text = clean_text(text).strip()
    if not text and decision in _NEEDS_TEXT:
        raise ValidationError(_NEEDS_TEXT[decision])
    if len(text) > MAX_TEXT:
        raise ValidationError(f"At most {MAX_TEXT} characters.")
    try:
        return _decide(review_id, decision, digest, text)
    except ReviewChangedError:
        for changed in Review.objects.filter(pk=review_id).select_related("caller", "draft"):
            waiting = Review.objects.filter(pk=review_id, state=State.PENDING, digest=digest)
            with transaction.atomic():
                if waiting.update(digest=review_digest(changed, changed.draft)):
                    review_changed(changed)
        raise
    except (TaskOvertakenError, ReviewVoidError) as error:
        for void in Review.objects.filter(pk=review_id).select_related("caller"):
            review_void(void, str(error))
        raise ReviewVoidError(str(error)) from error


@transaction.atomic
def _decide(review_id: int, decision: Decision, digest: str, text: str) -> Review:
    state = _STATES[decision]
    review = _take(review_id, state, digest, text)
    if reason := _shut_out(review):
        raise ReviewVoidError(reason)
    if state == State.APPROVED and review_digest(review, review.draft) != digest:
        raise ReviewChangedError("What would be done has changed since it was shown to you. Look at it again.")
    if decision == Decision.GRANT:
        _grant(review)
    elif state == State.APPROVED and (problem := _not_granted(review)):
        raise ReviewChangedError(problem)
    if review.draft is not None:
        _bind(review)
    _observe(review, decision, text)
    notifications_settle(task=review.task, kinds=ABOUT_REVIEWS)
    review_changed(review)
    review_decided.send(sender=Review, review=review)
    transaction.on_commit(partial(_have_learned, review.caller_id))
    return review


def _take(review_id: int, state: State, digest: str, text: str) -> Review:
    """Moves a pending review to `state` and keeps its row locked. Raises ReviewError if it can't be decided."""
    now = timezone.now()
    actor = acting.current().name
    changes: dict[str, Any] = {"state": state, "decision_text": text, "decided_by": actor, "decided_at": now}
    waiting = Review.objects.filter(pk=review_id, state=State.PENDING, digest=digest, expires_at__gt=now)
    if not waiting.update(**changes):
        raise _refusal(review_id, digest)
    review = Review.objects.select_related("caller", "draft__caller").get(pk=review_id)
    if state == State.ASKED:
        review.thread = [*review.thread, thread_entry(OWNER, text, at=now)]
        Review.objects.filter(pk=review_id).update(thread=review.thread)
    if state == State.APPROVED and review.level != review.caller.level:
        # The approval holds for the caller's level of now. If the level is lowered later, the owner is asked again.
        review.level = review.caller.level
        Review.objects.filter(pk=review_id).update(level=review.level)
    return review


def _grant(review: Review) -> None:
    """Grants such requests from now on: a draft that was shown becomes a skill, else the requested skill is granted."""
    from trust.learning.services import draft_approve  # trust.learning imports trust.services

    if review.draft is None:
        grant_add(caller=review.caller, slug=review.skill, level=Level.ACT)
        return
    try:
        skill = draft_approve(draft=review.draft, version=review.draft.version)
    except DraftDecidedError as error:
        raise ReviewChangedError(str(error)) from error
    review.skill = skill.slug


def _bind(review: Review) -> None:
    """Binds the run to the decision without its draft, so that the draft may change from now on."""
    review.digest = review_digest(review, None)
    Review.objects.filter(pk=review.pk).update(skill=review.skill, digest=review.digest)


def _have_learned(caller_id: int) -> None:
    publish("trust.tasks.learn", caller_id)


def _refusal(review_id: int, digest: str) -> ReviewError:
    review = Review.objects.filter(pk=review_id).first()
    if review is None:
        return ReviewVoidError("There is no such review any more.")
    if review.state == State.VOID:
        return ReviewVoidError(review.note)
    if review.state == State.ASKED:
        return ReviewDecidedError("It was decided before: the caller was asked something, and has not answered yet.")
    if review.state != State.PENDING:
        by = f" by {review.decided_by}" if review.decided_by else ""
        return ReviewDecidedError(f"It was decided before: {review.get_state_display().lower()}{by}.")
    if review.digest != digest:
        return ReviewChangedError("The request has changed since it was shown to you. Look at it again.")
    return ReviewDecidedError("Its time has passed.")


def _shut_out(review: Review) -> str:
    """Returns why the request may not run, even if the owner approves it; "" if it may."""
    if not review.caller.enabled:
        return "The caller was disabled."
    if CallerKey.objects.filter(pk__in=review.keys, revoked_at__isnull=False).exists():
        return "The key that the request came with was revoked."
    return ""


def _not_granted(review: Review) -> str:
    """Returns why nothing would run after an approval, for a skill not granted or disabled; "" if it would run."""
    if review.skill == CHAT:
        return ""
    grants = Grant.objects.filter(caller=review.caller, skill__slug=review.skill)
    if not grants.exists():
        return f"The agent has no grant of {review.skill} any more. Approve and grant it, reply, ask back or decline."
    if not grants.filter(skill__enabled=True).exists():
        return f"The skill {review.skill} is disabled. Enable it first, or reply, ask back or decline."
    return ""


def _observe(review: Review, decision: Decision, text: str) -> None:
    approves = decision in (Decision.APPROVE, Decision.GRANT)
    Observation.objects.create(
        caller=review.caller,
        review=review,
        task=review.task,
        skill=review.skill,
        # With the caller's later messages, since an approval covers them too.
        request="\n\n".join([review.request, *(line["text"] for line in review.thread if line["from"] == CALLER)]),
        has_more=len(review.messages) != 1 or bool(review.files or review.messages[0].get("referenceTaskIds")),
        decision=decision,
        reply="" if approves else text,
        edits=text if approves else "",
    )
    audit(f"review.{decision.value}", caller=review.caller, subject=str(review.task), reason=text)

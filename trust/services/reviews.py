"""The verbs of reviews: put before the owner, added to, decided, expired, void."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from trust.audit import audit
from trust.digests import run_digest
from trust.errors import (
    DraftDecidedError,
    ReviewChangedError,
    ReviewDecidedError,
    ReviewError,
    ReviewVoidError,
    TaskOvertakenError,
)
from trust.models import AuditEntry, Caller, CallerKey, Level, Observation, Review, SkillDraft
from trust.selectors import skill_of_workspace
from trust.services.callers import grant_add
from trust.signals import review_decided, review_voided
from volcanic import acting
from volcanic.celery import publish
from volcanic.models import Notification
from volcanic.services import notification_create
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
_NEEDS_TEXT = {Decision.REPLY: "Write the reply.", Decision.ASK: "Write the question."}
REFUSED = "request.refused"
WAITING = (State.PENDING, State.ASKED)
MAX_TEXT = 20_000
EXPIRED = "The owner has not decided in time. Ask again if it still matters."


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to put before the owner. `messages` are the caller's that would run, in their wire form."""

    caller_id: int
    task: uuid.UUID
    context_id: str
    key_id: int | None
    skill: str
    level: Level
    messages: Sequence[Mapping[str, Any]]
    text: str
    files: Sequence[str]
    request_digest: str
    summary: str
    suggestion: str
    offers_grant: bool = False
    note: str = ""
    talk: Sequence[Mapping[str, Any]] = ()
    # The draft of a skill that would cover it.
    draft: SkillDraft | None = None


@transaction.atomic
def review_open(*, request: Request) -> Review:
    """Puts a request before the owner: a new review, or the task's own again with what was said since.

    The owner is told when they are idle. Raises IntegrityError when the same request of the caller waits already, as
    another task.
    """
    caller = Caller.objects.get(pk=request.caller_id)
    skill = skill_of_workspace(caller.workspace_id, request.skill)
    digest = run_digest(
        caller_id=caller.pk, task=request.task, skill=skill, messages=request.messages, draft=request.draft
    )
    values = {
        "context_id": request.context_id,
        "key_id": request.key_id,
        "skill": request.skill,
        "level": request.level,
        "request": clean_text(request.text),
        "files": list(request.files),
        "messages": list(request.messages),
        "summary": clean_text(request.summary),
        "suggestion": clean_text(request.suggestion),
        "offers_grant": request.offers_grant,
        "draft": request.draft,
        "digest": digest,
        "request_digest": request.request_digest,
        "note": request.note,
        "talk": list(request.talk),
        "state": State.PENDING,
        "decision_text": "",
        "decided_by": "",
        "decided_at": None,
        "expires_at": timezone.now() + timedelta(seconds=settings.REVIEW_TTL),
        "warned_at": None,
    }
    review, _ = Review.objects.update_or_create(
        task=request.task, defaults=values, create_defaults={"caller": caller, **values}
    )
    _notify(review, Notification.Kind.REVIEW, f"{_sentence(review.summary)} Suggested action: {review.suggestion}")
    return review


def review_add(*, task: uuid.UUID, caller_id: int, message: Mapping[str, Any], text: str) -> bool:
    """Adds what the caller says to the review of its task, as talk: it decides nothing, but it would run with the
    rest, so that a decision on what was shown before no longer holds. Returns whether the review was waiting."""
    with transaction.atomic():
        rows = Review.objects.select_for_update(of=("self",)).select_related("caller")
        review = rows.select_related("caller", "draft").filter(task=task, caller_id=caller_id).first()
        if review is None or review.state != State.PENDING:
            return False
        messages = [*review.messages, dict(message)]
        skill = skill_of_workspace(review.caller.workspace_id, review.skill)
        Review.objects.filter(pk=review.pk).update(
            messages=messages,
            talk=[*review.talk, talk_entry("caller", text)],
            digest=run_digest(
                caller_id=review.caller_id, task=task, skill=skill, messages=messages, draft=review.draft
            ),
        )
    return True


def request_refused(*, caller_id: int, skill: str, reason: str) -> bool:
    """Writes down that policy refused a caller a skill, "" for one that there is not: once an hour for each, however
    often it asks. Returns whether it was written."""
    since = timezone.now() - timedelta(hours=1)
    lately = AuditEntry.objects.filter(caller_id=caller_id, action=REFUSED, subject=skill[:200], at__gte=since)
    if lately.exists():
        return False
    for caller in Caller.objects.filter(pk=caller_id):
        audit(REFUSED, caller=caller, subject=skill, reason=reason)
    return True


def talk_entry(speaker: str, text: str) -> dict[str, str]:
    """Returns a line of a review's talk: who said what, just now."""
    return {"from": speaker, "text": clean_text(text), "at": timezone.now().isoformat()}


def review_decide(*, review_id: int, decision: Decision, digest: str, text: str = "") -> Review:
    """Takes the owner's decision, all or nothing: the task goes on, is answered or ends in the same transaction.

    `digest` names what was shown; `text` is the owner's instruction, reply, question or reason. Of decisions that
    race one is taken. Raises ValidationError for a text that is missing or too long, ReviewDecidedError,
    ReviewChangedError, ReviewVoidError.
    """
    text = clean_text(text).strip()
    if not text and decision in _NEEDS_TEXT:
        raise ValidationError(_NEEDS_TEXT[decision])
    if len(text) > MAX_TEXT:
        raise ValidationError(f"At most {MAX_TEXT} characters.")
    try:
        with transaction.atomic():
            review = _take(review_id, _STATES[decision], digest, text)
            if reason := _shut_out(review):
                raise ReviewVoidError(reason)
            if review.draft is not None and _digest_of(review) != digest:
                raise ReviewChangedError("The proposed skill has changed since it was shown to you. Look at it again.")
            if decision == Decision.GRANT:
                _grant(review)
            if review.draft is not None:
                _bind(review)
            _observe(review, decision, text)
            review_decided.send(sender=Review, review=review)
            transaction.on_commit(lambda: _have_learned(review.caller_id))
    except (TaskOvertakenError, ReviewVoidError) as error:
        for void in Review.objects.filter(pk=review_id).select_related("caller"):
            _void(void, str(error))
        raise ReviewVoidError(str(error)) from error
    return review


def _take(review_id: int, state: State, digest: str, text: str) -> Review:
    """Moves a pending review to `state`; the row stays locked. Raises ReviewError when it is not to be had."""
    now = timezone.now()
    actor = acting.current().name
    changes: dict[str, Any] = {"state": state, "decision_text": text, "decided_by": actor, "decided_at": now}
    waiting = Review.objects.filter(pk=review_id, state=State.PENDING, digest=digest, expires_at__gt=now)
    if not waiting.update(**changes):
        raise _refusal(review_id, digest)
    review = Review.objects.select_related("caller", "key", "draft__caller").get(pk=review_id)
    if state == State.ASKED:
        review.talk = [*review.talk, talk_entry("owner", text)]
        Review.objects.filter(pk=review_id).update(talk=review.talk)
    return review


def _grant(review: Review) -> None:
    """Has such requests done from now on: the draft that was shown becomes a skill, or else what was asked for is
    granted."""
    from trust.learning.services import draft_approve  # it makes use of this package

    if review.draft is None:
        grant_add(caller=review.caller, slug=review.skill, level=Level.ACT)
        return
    try:
        skill = draft_approve(draft=review.draft, version=review.draft.version)
    except DraftDecidedError as error:
        raise ReviewChangedError(str(error)) from error
    review.skill = skill.slug


def _digest_of(review: Review) -> str:
    skill = skill_of_workspace(review.caller.workspace_id, review.skill)
    return run_digest(
        caller_id=review.caller_id, task=review.task, skill=skill, messages=review.messages, draft=review.draft
    )


def _bind(review: Review) -> None:
    """Binds what runs now to what was decided: from here on the draft may change."""
    skill = skill_of_workspace(review.caller.workspace_id, review.skill)
    digest = run_digest(caller_id=review.caller_id, task=review.task, skill=skill, messages=review.messages)
    Review.objects.filter(pk=review.pk).update(skill=review.skill, digest=digest)
    review.digest = digest


def _have_learned(caller_id: int) -> None:
    from trust.tasks import learn  # it calls the services

    publish(learn, caller_id)


def _refusal(review_id: int, digest: str) -> ReviewError:
    review = Review.objects.filter(pk=review_id).first()
    if review is None:
        return ReviewVoidError("There is no such review any more.")
    if review.state == State.VOID:
        return ReviewVoidError(review.note)
    if review.state != State.PENDING:
        by = f" by {review.decided_by}" if review.decided_by else ""
        return ReviewDecidedError(f"It was decided before: {review.get_state_display().lower()}{by}.")
    if review.digest != digest:
        return ReviewChangedError("The request has changed since it was shown to you. Look at it again.")
    return ReviewDecidedError("Its time has passed.")


def _shut_out(review: Review) -> str:
    """Returns why nothing of this caller's may run, "" if it may."""
    if not review.caller.enabled:
        return "The caller was disabled."
    if review.key is not None and review.key.revoked_at is not None:
        return "The key that the request came with was revoked."
    return ""


def _observe(review: Review, decision: Decision, text: str) -> None:
    approves = decision in (Decision.APPROVE, Decision.GRANT)
    Observation.objects.create(
        caller=review.caller,
        review=review,
        task=review.task,
        skill=review.skill,
        request=review.request,
        decision=decision,
        reply="" if approves else text,
        edits=text if approves else "",
    )
    audit(f"review.{decision.value}", caller=review.caller, subject=str(review.task), reason=text)


def review_ask_again(*, review: Review, note: str) -> bool:
    """Puts an approved request before the owner again: what would run is not what they approved. Returns whether it
    was approved. The digest is made anew."""
    skill = skill_of_workspace(review.caller.workspace_id, review.skill)
    digest = run_digest(caller_id=review.caller_id, task=review.task, skill=skill, messages=review.messages)
    with transaction.atomic():
        done = Review.objects.filter(pk=review.pk, state=State.APPROVED).update(
            state=State.PENDING,
            digest=digest,
            note=note,
            level=review.caller.level,
            decided_at=None,
            decided_by="",
            decision_text="",
            expires_at=timezone.now() + timedelta(seconds=settings.REVIEW_TTL),
            warned_at=None,
        )
        if done:
            audit("review.asked_again", caller=review.caller, subject=str(review.task), reason=note)
            text = f"{_sentence(review.summary)} {note} Suggested action: look again."
            _notify(review, Notification.Kind.REVIEW, text)
    return bool(done)


def reviews_void(
    *, caller: Caller | None = None, key: CallerKey | None = None, task: uuid.UUID | None = None, reason: str
) -> int:
    """Ends what waits for the owner: of a caller, or what came with a key of its, or of one task. Returns how many."""
    assert caller is not None or task is not None
    waiting = Review.objects.filter(state__in=WAITING)
    if caller is not None:
        waiting = waiting.filter(caller=caller)
    if key is not None:
        waiting = waiting.filter(key=key)
    if task is not None:
        waiting = waiting.filter(task=task)
    return sum(_void(review, reason) for review in waiting.select_related("caller"))


def _void(review: Review, reason: str) -> bool:
    """Ends a review that nothing can come of: its task ends with it, if it still waits."""
    with transaction.atomic():
        done = Review.objects.filter(pk=review.pk, state__in=WAITING).update(state=State.VOID, note=reason)
        if done:
            review.state, review.note = State.VOID, reason
            audit("review.void", caller=review.caller, subject=str(review.task), reason=reason)
            review_voided.send(sender=Review, review=review)
    return bool(done)


def reviews_sweep(*, now: datetime | None = None, limit: int = 200) -> tuple[int, int]:
    """Ends reviews whose time has passed, and warns the owner of those whose time soon will. Returns both numbers."""
    now = now or timezone.now()
    due = Review.objects.filter(state__in=WAITING, expires_at__lte=now).select_related("caller")
    expired = sum(_expire(review, now) for review in due[:limit])
    soon = now + timedelta(seconds=min(settings.REVIEW_WARN_SECONDS, settings.REVIEW_TTL / 2))
    close = Review.objects.filter(state=State.PENDING, expires_at__lte=soon, expires_at__gt=now, warned_at=None)
    warned = sum(_warn(review, now) for review in close.select_related("caller")[:limit])
    return expired, warned


def _expire(review: Review, now: datetime) -> bool:
    try:
        with transaction.atomic():
            # Not if it was put before the owner anew in this moment.
            due = Review.objects.filter(pk=review.pk, state__in=WAITING, expires_at__lte=now)
            if not due.update(state=State.EXPIRED, decided_at=now, decision_text=EXPIRED):
                return False
            review.state, review.decision_text = State.EXPIRED, EXPIRED
            audit("review.expired", caller=review.caller, subject=str(review.task))
            review_decided.send(sender=Review, review=review)
    except TaskOvertakenError as error:
        return _void(review, str(error))
    return True


def _warn(review: Review, now: datetime) -> bool:
    with transaction.atomic():
        if not Review.objects.filter(pk=review.pk, warned_at=None, state=State.PENDING).update(warned_at=now):
            return False
        until = timezone.localtime(review.expires_at).strftime("%Y-%m-%d %H:%M")
        text = f"{_sentence(review.summary)} This request ends unanswered on {until}. Suggested action: decide now."
        _notify(review, Notification.Kind.EXPIRING, text, urgent=True)
    return True


def _notify(review: Review, kind: Notification.Kind, text: str, *, urgent: bool = False) -> None:
    notification_create(
        workspace_id=review.caller.workspace_id,
        session_id=None,
        text=text,
        origin=f"task:{review.task}",
        caller=review.caller.name,
        kind=kind,
        task=review.task,
        urgent=urgent,
    )


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."

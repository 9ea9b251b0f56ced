"""Services of reviews: opening, adding messages, asking again, expiry and voiding. See `decisions` for deciding."""

import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from trust.audit import audit
from trust.digests import digest_of, run_digest
from trust.errors import TaskOvertakenError
from trust.models import AuditEntry, Caller, CallerKey, Level, Review, SkillDraft
from trust.owner_events import review_changed
from trust.selectors import skill_of_workspace
from trust.signals import review_decided, review_voided
from volcanic.models import Notification
from volcanic.origins import task_origin
from volcanic.services import notification_create, notifications_settle
from volcanic.text import clean_text

logger = logging.getLogger(__name__)

State = Review.State

REFUSED = "request.refused"
# The most audit lines that are searched for an earlier refusal of the same skill.
MAX_REFUSED = 50
ABOUT_REVIEWS = (Notification.Kind.REVIEW, Notification.Kind.EXPIRING)
# The most messages, and characters of messages, in a review's thread.
MAX_THREAD, MAX_THREAD_CHARACTERS = 50, 100_000
# The speakers in a review's thread.
CALLER, OWNER, ASSISTANT = "caller", "owner", "assistant"
EXPIRED = "The owner has not decided in time. Ask again if it still matters."


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to put before the owner. `messages` are the caller's messages that would run, in their wire form."""

    caller_id: int
    task: uuid.UUID
    context_id: str
    # The ids of the keys that the messages came with.
    keys: Sequence[int]
    skill: str
    level: Level
    messages: Sequence[Mapping[str, Any]]
    # The number of messages in the task's history, these included.
    message_count: int
    text: str
    files: Sequence[str]
    request_digest: str
    summary: str
    suggestion: str
    offers_grant: bool = False
    note: str = ""
    thread: Sequence[Mapping[str, Any]] = ()
    # A line for each earlier task that the messages refer to.
    references: Sequence[str] = ()
    # The draft of a skill that would cover the request.
    draft: SkillDraft | None = None


@transaction.atomic
def review_open(*, request: Request) -> Review:
    """Puts a request before the owner. Returns the task's review, new or pending again with the later messages.

    The owner is notified when they are idle. Raises IntegrityError for a new review if the same request of the caller
    waits already in another task.
    """
    caller = Caller.objects.get(pk=request.caller_id)
    skill = skill_of_workspace(caller.workspace_id, request.skill)
    references = [clean_text(line) for line in request.references]
    digest = run_digest(
        caller_id=caller.pk,
        task=request.task,
        skill=skill,
        messages=request.messages,
        references=references,
        draft=request.draft,
    )
    values = {
        "context_id": request.context_id,
        "keys": list(request.keys),
        "skill": request.skill,
        "level": request.level,
        "request": clean_text(request.text),
        "files": list(request.files),
        "references": references,
        "messages": list(request.messages),
        "message_count": request.message_count,
        "summary": clean_text(request.summary),
        "suggestion": clean_text(request.suggestion),
        "offers_grant": request.offers_grant,
        "draft": request.draft,
        "digest": digest,
        # A thread of several messages is never the same request as another.
        "request_digest": request.request_digest if request.message_count == 1 else _own_digest(request.task),
        "note": request.note,
        "thread": list(request.thread),
        "state": State.PENDING,
        "decision_text": "",
        "decided_by": "",
        "decided_at": None,
        "expires_at": timezone.now() + timedelta(seconds=settings.REVIEW_TTL),
        "warned_at": None,
    }
    again = values | {"request_digest": _own_digest(request.task)}
    review, _ = Review.objects.update_or_create(
        task=request.task, defaults=again, create_defaults={"caller": caller, **values}
    )
    review_changed(review)
    _notify(review, Notification.Kind.REVIEW, f"{_sentence(review.summary)} Suggested action: {review.suggestion}")
    return review


def review_digest(review: Review, draft: SkillDraft | None) -> str:
    """Returns the digest of what would run for a review now, shown with `draft`."""
    return digest_of(review, skill_of_workspace(review.caller.workspace_id, review.skill), draft)


def _own_digest(task: uuid.UUID) -> str:
    """Returns a request digest for a thread of several messages, unique to its task.

    The owner has seen the thread already, so it waits even if the same request waits in another task.
    """
    return task_origin(task)


def review_add(
    *,
    task: uuid.UUID,
    caller_id: int,
    message: Mapping[str, Any],
    text: str,
    key_id: int | None = None,
    files: Sequence[str] = (),
    references: Sequence[str] = (),
) -> bool:
    """Adds a caller's message to the thread of its task's review. Returns whether the review was waiting.

    The message decides nothing. It would run with the rest, so the digest changes and a decision on the content shown
    before no longer holds. `key_id` is the key that the message came with. `files` has a line for each file of the
    message, `references` a line for each earlier task that it refers to.

    Raises ValidationError if the thread would exceed MAX_THREAD messages or MAX_THREAD_CHARACTERS characters, and if
    the key was revoked meanwhile.
    """
    keys = [] if key_id is None else [key_id]
    with transaction.atomic():
        if not keys_lock(ids=keys):
            raise ValidationError("The key that this came with was revoked.")
        rows = Review.objects.select_for_update(of=("self",)).select_related("caller", "draft")
        review = rows.filter(task=task, caller_id=caller_id).first()
        if review is None or review.state != State.PENDING:
            return False
        said = sum(len(entry["text"]) for entry in review.thread)
        if len(review.thread) >= MAX_THREAD or said + len(text) > MAX_THREAD_CHARACTERS:
            raise ValidationError("The owner has enough to read. Wait until they have decided.")
        text = "\n".join([text, *(f"[file: {line}]" for line in files)]).strip()
        review.messages = [*review.messages, dict(message)]
        review.references = list(dict.fromkeys([*review.references, *map(clean_text, references)]))
        Review.objects.filter(pk=review.pk).update(
            messages=review.messages,
            references=review.references,
            message_count=F("message_count") + 1,
            keys=list(dict.fromkeys([*review.keys, *keys])),
            files=[*review.files, *files],
            thread=[*review.thread, thread_entry(CALLER, text, at=timezone.now())],
            digest=review_digest(review, review.draft),
        )
        review_changed(review)
    return True


def keys_lock(*, ids: Iterable[int]) -> bool:
    """Locks these keys until the transaction ends. Returns whether all of them exist and are not revoked."""
    wanted = list(ids)
    if not wanted:
        return True
    rows = CallerKey.objects.select_for_update(no_key=True).filter(pk__in=wanted).order_by("pk")
    return len([key for key in rows if key.revoked_at is None]) == len(wanted)


def request_refused(*, caller_id: int, skill: str, reason: str) -> bool:
    """Adds to the audit that policy refused a caller a skill; `skill` is "" for an unknown skill.

    There is at most one line an hour for each skill, even if the caller asks more often. Returns whether a line was
    added.
    """
    since = timezone.now() - timedelta(hours=1)
    last = AuditEntry.objects.filter(caller_id=caller_id, action=REFUSED).order_by("-id")
    if any(entry.subject == skill[:200] and entry.at >= since for entry in last[:MAX_REFUSED]):
        return False
    for caller in Caller.objects.filter(pk=caller_id):
        audit(REFUSED, caller=caller, subject=skill, reason=reason)
    return True


def thread_entry(speaker: str, text: str, *, at: datetime | None = None) -> dict[str, str]:
    """Returns an entry of a review's thread: the speaker, the text, and the time if it is known."""
    return {"from": speaker, "text": clean_text(text).strip(), "at": at.isoformat() if at else ""}


def reviews_lock(*, callers: Iterable[int]) -> list[Review]:
    """Locks and returns the pending reviews of these callers that show a draft, in the order of their ids.

    A decision locks reviews before grants and drafts, so callers of this function do the same.
    """
    rows = Review.objects.select_for_update(of=("self",))
    return list(rows.filter(caller__in=list(callers), state=State.PENDING, draft__isnull=False).order_by("id"))


def review_ask_again(*, review: Review, note: str) -> bool:
    """Puts an approved request before the owner again, since the run would differ from what they approved.

    The review gets a new digest, and a draft that is no longer open is removed from it. Returns whether the review was
    approved.
    """
    draft = review.draft if review.draft is not None and review.draft.state == SkillDraft.State.OPEN else None
    with transaction.atomic():
        done = Review.objects.filter(pk=review.pk, state=State.APPROVED).update(
            state=State.PENDING,
            draft=draft,
            digest=review_digest(review, draft),
            request_digest=_own_digest(review.task),
            note=note,
            level=review.caller.level,
            decided_at=None,
            decided_by="",
            decision_text="",
            expires_at=timezone.now() + timedelta(seconds=settings.REVIEW_TTL),
            warned_at=None,
        )
        if done:
            review.state = State.PENDING
            review_changed(review)
            audit("review.asked_again", caller=review.caller, subject=str(review.task), reason=note)
            text = f"{_sentence(review.summary)} {note} Suggested action: look again."
            _notify(review, Notification.Kind.REVIEW, text)
    return bool(done)


def reviews_void(
    *,
    caller: Caller | None = None,
    keys: Collection[CallerKey] = (),
    task: uuid.UUID | None = None,
    approved: bool = False,
    reason: str,
) -> int:
    """Makes waiting reviews void, each with the task that waits. Returns the number of reviews.

    The reviews are those of a `caller`, only with messages that came with `keys` if any are given, or that of a `task`.
    With `approved`, reviews that are approved and have not begun to run become void, too.
    """
    assert caller is not None or task is not None
    states = [*Review.WAITING, State.APPROVED] if approved else Review.WAITING
    waiting = Review.objects.filter(state__in=states)
    if caller is not None:
        waiting = waiting.filter(caller=caller)
    if keys:
        waiting = waiting.filter(keys__overlap=[key.pk for key in keys])
    if task is not None:
        waiting = waiting.filter(task=task)
    rows = waiting.select_related("caller").order_by("id")
    return sum(review_void(review, reason, states=states) for review in rows)


def review_void(review: Review, reason: str, *, states: Sequence[State] = Review.WAITING) -> bool:
    """Makes a review void if it is in one of `states`. Its task ends with it if it still waits.

    Returns whether this call did it.
    """
    with transaction.atomic():
        done = Review.objects.filter(pk=review.pk, state__in=states).update(state=State.VOID, note=reason)
        if done:
            review.state, review.note = State.VOID, reason
            review_changed(review)
            notifications_settle(task=review.task, kinds=ABOUT_REVIEWS)
            audit("review.void", caller=review.caller, subject=str(review.task), reason=reason)
            review_voided.send(sender=Review, review=review)
    return bool(done)


def reviews_sweep(*, now: datetime | None = None, limit: int = 200) -> tuple[int, int]:
    """Expires reviews whose time has passed, and warns the owner of reviews that expire soon. Returns both numbers."""
    now = now or timezone.now()
    rows = Review.objects.select_related("caller").order_by("expires_at", "id")
    due = rows.filter(state__in=Review.WAITING, expires_at__lte=now)
    expired = _each(_expire, due[:limit], now)
    soon = now + timedelta(seconds=min(settings.REVIEW_WARN_SECONDS, settings.REVIEW_TTL / 2))
    close = rows.filter(state=State.PENDING, expires_at__lte=soon, expires_at__gt=now, warned_at=None)
    return expired, _each(_warn, close[:limit], now)


def _each(step: Callable[[Review, datetime], bool], reviews: Iterable[Review], now: datetime) -> int:
    """Returns the number of reviews for which `step` returned True. An error in one review does not stop the others."""
    done = 0
    for review in reviews:
        try:
            done += step(review, now)
        except Exception:
            logger.exception("review %s could not be swept", review.pk)
    return done


def _expire(review: Review, now: datetime) -> bool:
    try:
        with transaction.atomic():
            # Checked again, since the review may have been put before the owner again at this moment.
            due = Review.objects.filter(pk=review.pk, state__in=Review.WAITING, expires_at__lte=now)
            if not due.update(state=State.EXPIRED, decided_at=now, decision_text=EXPIRED):
                return False
            review.state, review.decision_text = State.EXPIRED, EXPIRED
            review_changed(review)
            notifications_settle(task=review.task, kinds=ABOUT_REVIEWS)
            audit("review.expired", caller=review.caller, subject=str(review.task))
            review_decided.send(sender=Review, review=review)
    except TaskOvertakenError as error:
        return review_void(review, str(error))
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
        origin=task_origin(review.task),
        caller=review.caller.name,
        kind=kind,
        task=review.task,
        urgent=urgent,
    )


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."

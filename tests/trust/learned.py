"""Learning fixtures: the owner's decisions, and the drafts learned from them, made without a run."""

import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection
from django.utils import timezone

from a2a_server.models import Task, TaskState
from tests.waiting import PATIENCE
from trust.errors import DraftDecidedError, ReviewError
from trust.learning.services import caller_learn
from trust.models import CHAT, Caller, Level, Observation, Review, SkillDraft
from trust.services import Request, review_open
from volcanic.models import Session, Turn
from volcanic.origins import session_scope, task_origin

DAYS = ("Monday", "Tuesday", "Friday", "Sunday")
PARCEL = "Please note that the parcel of {} has come."
AGENDA = "Please print the agenda of {}"
Decision = Observation.Decision


def decided(caller: Caller, text: str, decision: Decision = Decision.APPROVE, **given: Any) -> Observation:
    """Returns the observation that a review leaves of the owner's decision on a request."""
    values: dict[str, Any] = {"task": uuid.uuid4(), "skill": CHAT}
    return Observation.objects.create(caller=caller, request=text, decision=decision, **values | given)


def thrice(
    caller: Caller, text: str = PARCEL, decision: Decision = Decision.APPROVE, **given: Any
) -> list[Observation]:
    """Returns three equal decisions on similar requests."""
    return [decided(caller, text.format(day), decision, **given) for day in DAYS[:3]]


def learner(caller: Caller, level: Level = Level.LEARN) -> Caller:
    """Sets a caller's level without an audit entry. Returns the caller."""
    Caller.objects.filter(pk=caller.pk).update(level=level)
    caller.level = level
    return caller


def drafted(caller: Caller) -> SkillDraft:
    """Returns the draft that is learned from three approvals."""
    learner(caller)
    thrice(caller)
    (draft,) = caller_learn(caller=caller)
    return draft


def used(one: Observation, *names: str, outcome: str = "success") -> None:
    """Stores the turn of a request in which the assistant called tools, with messages in the form of pydantic-ai."""
    context = str(uuid.uuid4())
    session = Session.objects.create(
        workspace=one.caller.workspace, kind="inbound", scope=session_scope(one.caller_id, context)
    )
    one.review = Review.objects.create(
        caller=one.caller,
        task=one.task,
        context_id=context,
        skill=CHAT,
        level=one.caller.level,
        request=one.request,
        state=Review.State.APPROVED,
        expires_at=timezone.now(),
    )
    one.save(update_fields=["review"])
    calls = [{"part_kind": "tool-call", "tool_name": name, "args": "{}", "tool_call_id": name} for name in names]
    results: list[dict[str, Any]] = [
        {"part_kind": "tool-return", "tool_name": name, "content": "ok", "tool_call_id": name, "outcome": outcome}
        for name in names
    ]
    messages = [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": one.request}]},
        {"kind": "response", "parts": calls},
        {"kind": "request", "parts": results},
        {"role": "assistant", "text": "the neutral form, of a handler"},
    ]
    Turn.objects.create(
        session=session,
        origin=task_origin(one.task),
        prompt=one.request,
        messages=messages,
        state="completed",
        started_at=timezone.now(),
    )


def waiting(caller: Caller, draft: SkillDraft | None = None, text: str = "Do it.") -> Review:
    """Returns a waiting review that shows a draft, and makes its task, as a worker would."""
    session = Session.objects.create(workspace=caller.workspace, kind="inbound", scope=str(uuid.uuid4()))
    words = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]}
    task = Task.objects.create(
        caller=caller, session=session, context_id="c", state=TaskState.AUTH_REQUIRED, history=[words], seq=1
    )
    return review_open(
        request=Request(
            caller_id=caller.pk,
            task=task.pk,
            context_id="c",
            keys=(),
            skill=CHAT,
            level=Level(caller.level),
            messages=[words],
            message_count=1,
            text=text,
            files=[],
            request_digest=str(uuid.uuid4()),
            summary="Wants it done.",
            suggestion="approve",
            draft=draft,
        )
    )


def at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Makes calls in threads that start together. Returns for each call its value, or the error that refused it."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait(PATIENCE)
        try:
            return call()
        except (DraftDecidedError, ReviewError) as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))

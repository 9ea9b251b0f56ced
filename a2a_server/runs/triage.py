"""Triage and review: the assistant reads and sums up a request, and a review waits for the owner's decision."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from a2a_server.files import file_line
from a2a_server.models import InboundFile, Task, TaskState
from a2a_server.runs.approvals import DISABLED, KEY_REVOKED, PASSED_ON
from a2a_server.runs.turns import notes_of_task, triage_turn
from a2a_server.selectors import references_of
from a2a_server.services import Run, run_note, run_release, task_settle
from trust.models import CHAT, Review, Skill, SkillDraft
from trust.policy import Handling, Mode
from trust.selectors import review_of_request, reviews_waiting
from trust.services import ASSISTANT, CALLER, Request, caller_lock, keys_lock, review_open, thread_entry
from volcanic.a2a_json import message_text
from volcanic.runtime.base import TurnState
from volcanic.runtime.current import runner
from volcanic.runtime.silent import SilentSink
from volcanic.selectors import notes_of
from volcanic.services import notes_delete
from volcanic.text import one_line
from volcanic.turns.execution import ReleasedError, execute
from volcanic.turns.leases import LocalRun

logger = logging.getLogger(__name__)

MAX_SUMMARY, MAX_SUGGESTION = 1000, 500
SUMMARY, SUGGESTED_ACTION = "summary", "suggested_action"
BROKE_OFF = "The assistant stopped before it had read the whole request."
AGENT = "ROLE_AGENT"
LOOK = "read it, then approve, reply, ask back or decline."


@dataclass(frozen=True)
class Reading:
    """The result of a triage for the owner: a summary of the request and a suggested action."""

    summary: str
    suggestion: str
    # A warning for the owner about the summary, "" for no warning.
    note: str = ""


def put_before_owner(
    run: Run,
    local: LocalRun,
    skill: Skill | None,
    handling: Handling,
    review: Review | None,
    draft: SkillDraft | None,
) -> None:
    """Has a request wait for the owner's decision: working → auth_required, with a review.

    `review` is the task's earlier review, or None; later messages are added to that review. `draft` is the draft of a
    skill that covers the request, or None. The request is rejected when MAX_WAITING_REVIEWS requests of the caller wait
    already, or when the same request waits already. A triage that the worker's shutdown interrupts is given back, for
    another worker to repeat.
    """
    if review is None and (problem := _no_room(run)):
        task_settle(run=run, state=TaskState.REJECTED, text=problem)
        return
    messages, thread = _said(run, review)
    files = _files(run)
    run_note(run=run, skill=skill.slug if skill else "", repeatable=True)
    if handling.mode is Mode.TRIAGE:
        try:
            reading = _triage(run, local, messages, files)
        except ReleasedError:
            run_release(run=run)
            return
        if reading is None:
            return
    else:
        assert skill is not None
        reading = Reading(f"Asks for the skill {skill.name}: {_first(messages)}", LOOK)
    request = Request(
        caller_id=run.caller_id,
        task=run.task_id,
        context_id=run.context_id,
        keys=list(dict.fromkeys([*(review.keys if review else ()), *run.keys])),
        skill=skill.slug if skill else CHAT,
        level=run.level,
        messages=messages,
        message_count=run.history_length,
        text=message_text(messages[0]),
        files=files,
        references=references_of(messages, run.caller_id),
        request_digest=run.request_digest,
        summary=reading.summary,
        suggestion=reading.suggestion,
        offers_grant=handling.offers_grant,
        note=reading.note,
        thread=thread,
        draft=draft,
    )
    _park(run, request, new=review is None)


def _no_room(run: Run) -> str:
    """Returns the reason why the run's request can't wait for the owner, "" if it can. The caller reads the reason."""
    most = settings.MAX_WAITING_REVIEWS
    if most and reviews_waiting(caller_id=run.caller_id) >= most:
        return f"{most} requests of this agent wait for the owner already. Ask again when they have decided some."
    if run.first_message is not None:
        return ""
    other = review_of_request(caller_id=run.caller_id, request_digest=run.request_digest)
    return f"The very same request of this agent waits for the owner already, as task {other}." if other else ""


def _park(run: Run, request: Request, *, new: bool) -> None:
    with transaction.atomic():
        # The lock lets one request of the caller pass at a time. The checks from before the triage are repeated here:
        # the caller, the keys and the number of waiting requests may have changed meanwhile.
        caller = caller_lock(caller_id=run.caller_id)
        shut_out = DISABLED if caller is None or not caller.enabled else ""
        if not shut_out and not keys_lock(ids=request.keys):
            shut_out = KEY_REVOKED
        if problem := shut_out or (_no_room(run) if new else ""):
            task_settle(run=run, state=TaskState.REJECTED, text=problem)
            return
        # Locks the review first and then the task, the order in which a decision locks them.
        review_open(request=request)
        if not task_settle(run=run, state=TaskState.AUTH_REQUIRED, text=PASSED_ON):
            transaction.set_rollback(True)


def _said(run: Run, review: Review | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the caller's messages that would run, and the thread after the first of them.

    The thread holds all that was said in the task, so that the owner sees everything that they decide on.
    """
    if run.first_message is None:
        return [run.message], []
    history = Task.objects.values_list("history", flat=True).get(pk=run.task_id)
    new = history[review.message_count if review else 0 :]
    messages = [message for message in new if message["role"] != AGENT]
    thread = [thread_entry(ASSISTANT if message["role"] == AGENT else CALLER, _words(message)) for message in new]
    # Only the last message has a time, the present one: the history does not hold the times of the others.
    thread[-1] = thread_entry(CALLER, _words(run.message), at=timezone.now())
    if review is None:
        return messages, thread[1:]
    # The review's thread holds the owner's own question already.
    asked = review.state == Review.State.ASKED
    since = [line for line in thread if not (asked and line["from"] == ASSISTANT)]
    return [*review.messages, *messages], [*review.thread, *since]


def _words(message: Mapping[str, Any]) -> str:
    """Returns the text of a message, with a line for each file of the message."""
    files = [part for part in message.get("parts", ()) if "raw" in part or "url" in part]
    lines = (file_line(part.get("filename", ""), part.get("mediaType", ""), part.get("url", "")) for part in files)
    return "\n".join([message_text(message), *(f"[file: {line}]" for line in lines)])


def _files(run: Run) -> list[str]:
    rows = InboundFile.objects.filter(task_id=run.task_id).order_by("position").defer("content")
    return [file_line(row.filename, row.declared_type, row.url) for row in rows]


def _triage(run: Run, local: LocalRun, messages: Sequence[dict[str, Any]], files: Sequence[str]) -> Reading | None:
    """Returns the assistant's reading of a request; if the triage fails, the beginning of the caller's own words.

    Returns None when the run lost its task. Raises ReleasedError when the worker shuts down.
    """
    # The notes of an earlier triage are about other messages.
    notes_delete(workspace_id=run.workspace_id, namespace=notes_of_task(run), keys=(SUMMARY, SUGGESTED_ACTION))
    turn = triage_turn(run, messages, files)
    outcome = execute(local, turn, SilentSink(), runner().run)
    if outcome is None:
        return None
    notes = notes_of(workspace_id=run.workspace_id, namespace=notes_of_task(run))
    suggestion = one_line(notes.get(SUGGESTED_ACTION, ""), MAX_SUGGESTION) or LOOK
    if summary := one_line(notes.get(SUMMARY, ""), MAX_SUMMARY):
        return Reading(summary, suggestion, "" if outcome.state is TurnState.COMPLETED else BROKE_OFF)
    if outcome.state is TurnState.COMPLETED and (said := one_line(outcome.text, MAX_SUMMARY)):
        return Reading(said, suggestion)
    logger.warning("task %s could not be summed up: %s", run.task_id, outcome.text)
    note = "The assistant could not sum up the request; these are the caller's own words."
    return Reading(_first(messages), suggestion, note)


def _first(messages: Sequence[dict[str, Any]]) -> str:
    return one_line(message_text(messages[0]), 300) or "(a message without text)"

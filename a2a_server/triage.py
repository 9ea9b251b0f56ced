"""Puts a request before the owner: read and summed up by the assistant, then a review that waits for their decision."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from a2a_server.approvals import PASSED_ON
from a2a_server.executing import ReleasedError, execute
from a2a_server.models import InboundFile, TaskState
from a2a_server.runs import Run, kept
from a2a_server.services import Claim, run_note, run_release, task_settle
from a2a_server.sink import SilentSink
from a2a_server.turns import message_text, notes_of_task, triage_turn
from trust.models import CHAT, Review, Skill, SkillDraft
from trust.policy import Decision, Mode
from trust.selectors import review_of_request, reviews_waiting
from trust.services import Request, review_open, talk_entry
from volcanic.runtime.base import TurnState
from volcanic.runtime.current import runner
from volcanic.selectors import notes_of

logger = logging.getLogger(__name__)

MAX_SUMMARY, MAX_SUGGESTION = 1000, 500
SUMMARY, SUGGESTED_ACTION = "summary", "suggested_action"
LOOK = "read it, then approve, reply, ask back or decline."


@dataclass(frozen=True)
class Reading:
    """What a triage leaves for the owner."""

    summary: str
    suggestion: str
    # What the owner has to know about how it came about.
    note: str = ""


def put_before_owner(
    claim: Claim, skill: Skill | None, decision: Decision, review: Review | None, draft: SkillDraft | None
) -> None:
    """Has a request wait for the owner's decision: working → auth_required, with a review. `review` is the task's own,
    where it had one before: what came since is added to it. `draft` would cover it.

    Rejected when too many of the caller's wait already, or this very one does.
    """
    most = settings.MAX_WAITING_REVIEWS
    if review is None and most and reviews_waiting(caller_id=claim.caller_id) >= most:
        text = f"{most} requests of this agent wait for the owner already. Ask again when they have decided some."
        task_settle(claim=claim, state=TaskState.REJECTED, text=text)
        return
    messages, talk = _since(claim, review)
    files = _files(claim)
    run_note(claim=claim, skill=skill.slug if skill else "", repeatable=True)
    if decision.mode is Mode.TRIAGE:
        try:
            reading = _triage(claim, messages, files)
        except ReleasedError:
            run_release(claim=claim)
            return
        if reading is None:
            return
    else:
        assert skill is not None
        reading = Reading(f"Asks for the skill {skill.name}: {_first(messages)}"[:MAX_SUMMARY], LOOK)
    request = Request(
        caller_id=claim.caller_id,
        task=claim.task_id,
        context_id=claim.context_id,
        key_id=claim.key_id,
        skill=skill.slug if skill else CHAT,
        level=claim.level,
        messages=messages,
        text=message_text(messages[0]),
        files=files,
        request_digest=claim.request_digest,
        summary=reading.summary,
        suggestion=reading.suggestion,
        offers_grant=decision.offers_grant,
        note=reading.note,
        talk=talk,
        draft=draft,
    )
    _park(claim, request)


def _park(claim: Claim, request: Request) -> None:
    try:
        with transaction.atomic():
            # The review first and then the task, in the order in which a decision takes them.
            review_open(request=request)
            if not task_settle(claim=claim, state=TaskState.AUTH_REQUIRED, text=PASSED_ON):
                transaction.set_rollback(True)
    except IntegrityError as error:
        if "review_of_request_once" not in str(error):
            raise
        other = review_of_request(caller_id=claim.caller_id, request_digest=request.request_digest)
        text = f"The very same request of this agent waits for the owner already, as task {other}."
        task_settle(claim=claim, state=TaskState.REJECTED, text=text)


def _since(claim: Claim, review: Review | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the messages that would run, and the talk about them."""
    if review is None:
        return [claim.message], []
    messages = list(review.messages)
    if not messages or messages[-1].get("messageId") != claim.message.get("messageId"):
        messages.append(claim.message)
        return messages, [*review.talk, talk_entry("caller", message_text(claim.message))]
    return messages, list(review.talk)


def _files(claim: Claim) -> list[str]:
    rows = InboundFile.objects.filter(task_id=claim.task_id).order_by("position").defer("content")
    return [f"{row.filename or f'file {row.position + 1}'} ({row.declared_type or 'type not given'})" for row in rows]


def _triage(claim: Claim, messages: Sequence[dict[str, Any]], files: Sequence[str]) -> Reading | None:
    """Returns what the assistant makes of a request; if it can't, the caller's own words. None when the task is no
    longer this run's."""
    turn = triage_turn(claim, messages, files)
    with kept(Run(claim.task_id, claim.attempt)) as run:
        outcome = execute(claim, run, turn, SilentSink(), runner().run)
    if outcome is None:
        return None
    notes = notes_of(workspace_id=claim.workspace_id, namespace=notes_of_task(claim))
    suggestion = _line(notes.get(SUGGESTED_ACTION, ""), MAX_SUGGESTION) or LOOK
    if summary := _line(notes.get(SUMMARY, ""), MAX_SUMMARY):
        return Reading(summary, suggestion)
    if outcome.state is TurnState.COMPLETED and (said := _line(outcome.text, MAX_SUMMARY)):
        return Reading(said, suggestion)
    logger.warning("task %s could not be summed up: %s", claim.task_id, outcome.text)
    note = "The assistant could not sum it up; these are the caller's own words."
    return Reading(_first(messages), suggestion, note)


def _first(messages: Sequence[dict[str, Any]]) -> str:
    return _line(message_text(messages[0]), 300) or "(a message without text)"


def _line(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"

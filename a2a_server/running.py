"""Runs submitted tasks: claim, ask policy, do what it says, write the end. Called by Celery, with a task's id."""

import logging
import uuid
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from a2a_server import approvals, builtin, reports
from a2a_server.errors import ContentTypeNotSupported, RequestError
from a2a_server.executing import UNEXPECTED, ReleasedError, Work, execute
from a2a_server.models import TaskState
from a2a_server.runs import WORKER, Run, kept
from a2a_server.services import SERVER_RESTARTED, ArtifactUpdate, Claim, run_finish, run_note, task_claim, task_settle
from a2a_server.sink import TaskSink
from a2a_server.triage import messages_since, put_before_owner
from a2a_server.turns import full_turn, message_text
from trust.handlers import handler
from trust.learning.matching import learned_skill, open_draft
from trust.models import CHAT, Level, Review, Skill
from trust.naming import Unnamed, named_skill
from trust.policy import Decision, Mode, decide
from trust.selectors import caller_standing, skill_of_workspace
from trust.services import request_refused, reviews_void
from volcanic.runtime.base import Outcome, Turn, TurnFailedError, TurnState
from volcanic.runtime.current import runner

logger = logging.getLogger(__name__)


def task_run(*, task_id: uuid.UUID) -> None:
    """Runs a submitted task to its next rest. Does nothing if it is not there to be claimed."""
    claim = task_claim(task_id=task_id, worker=WORKER)
    if claim is None:
        return
    try:
        _follow_policy(claim)
    except TurnFailedError as error:
        task_settle(claim=claim, state=TaskState.FAILED, text=str(error))
    except Exception:
        logger.exception("run of task %s failed", task_id)
        task_settle(claim=claim, state=TaskState.FAILED, text=UNEXPECTED)


def _follow_policy(claim: Claim) -> None:
    """Asks policy what the request leads to, and does that. Here alone, so that no way in goes round it."""
    if not claim.enabled:
        task_settle(claim=claim, state=TaskState.REJECTED, text="The owner has disabled this agent.")
        return
    review = approvals.review_of(claim)
    approved = review if approvals.is_approved(claim, review) else None
    skill = _skill_of(claim, approved)
    draft = None
    if skill is None and approved is None and claim.level is Level.PROPOSE and not _brings_files(claim):
        draft = open_draft(message_text(claim.message), caller_id=claim.caller_id)
    decision = _decide(claim, skill, approved=approved is not None, has_draft=draft is not None)
    if decision.mode is Mode.REJECT:
        near = f" Did you mean {' or '.join(skill.near)}?" if isinstance(skill, Unnamed) and skill.near else ""
        task_settle(claim=claim, state=TaskState.REJECTED, text=decision.reason + near)
        request_refused(
            caller_id=claim.caller_id, skill=skill.slug if isinstance(skill, Skill) else "", reason=decision.reason
        )
        return
    assert not isinstance(skill, Unnamed)
    if approved is not None and (problem := approvals.problem(claim, approved, skill)):
        approvals.ask_again(claim, approved, problem)
        return
    match decision.mode:
        case Mode.TRIAGE | Mode.REVIEW:
            put_before_owner(claim, skill, decision, review, draft if decision.offers_draft else None)
        case Mode.BUILT_IN:
            assert skill is not None
            _answer(claim, skill, decision)
        case Mode.FULL_TURN:
            _full_turn(claim, skill, decision, approved, messages_since(claim, review)[0])
    if review is not None and approved is None and decision.mode in (Mode.BUILT_IN, Mode.FULL_TURN):
        # It waited for the caller's answer, and the owner has granted it in the meantime.
        reviews_void(task=claim.task_id, reason="It was done without you: the caller may have it done now.")


def _skill_of(claim: Claim, approved: Review | None) -> Skill | Unnamed | None:
    """Returns the skill that the request names, or that was learned from such requests; None for a plain request.

    What the owner approved is the skill that they saw.
    """
    if approved is not None:
        if approved.skill == CHAT:
            return None
        return skill_of_workspace(claim.workspace_id, approved.skill) or Unnamed(approved.skill)
    # In the order in which it is read where the request comes in.
    name = claim.metadata.get("skill") or claim.message.get("metadata", {}).get("skill")
    if not name and _brings_files(claim):
        return None  # no example has any
    if not name:
        granted = [slug for slug in claim.grants if slug != CHAT]
        text = message_text(claim.message)
        return learned_skill(text, workspace_id=claim.workspace_id, granted=granted) if granted else None
    skill = named_skill(name, workspace_id=claim.workspace_id, grants=claim.grants)
    return None if isinstance(skill, Skill) and skill.slug == CHAT else skill


def _brings_files(claim: Claim) -> bool:
    """Tells whether a message has more than words: files, that no example of a learned skill says anything of."""
    return claim.has_files or any("raw" in part or "url" in part for part in claim.message.get("parts", ()))


def _decide(claim: Claim, skill: Skill | Unnamed | None, *, approved: bool, has_draft: bool) -> Decision:
    return decide(
        level=claim.level,
        grants=claim.grants,
        skill=_named(skill),
        kind=None if isinstance(skill, Unnamed) else Skill.Kind(skill.kind if skill else Skill.Kind.ASSISTANT),
        hops=claim.hops,
        max_hops=settings.MAX_HOPS,
        approved=approved,
        has_draft=has_draft,
    )


def _named(skill: Skill | Unnamed | None) -> str:
    """Returns what is asked for: a skill's id, what it was called where there is none, `chat` for a plain request."""
    if isinstance(skill, Unnamed):
        return skill.name
    return skill.slug if skill else CHAT


def _answer(claim: Claim, skill: Skill, decision: Decision) -> None:
    """Has a built-in skill answer a request that did not come to it in the web process: one that the owner approved."""
    standing = caller_standing(caller_id=claim.caller_id, most_unread=settings.MAX_UNREAD_MESSAGES)
    try:
        if claim.has_files:
            raise ContentTypeNotSupported(f"The skill {skill.slug!r} takes text and no files.")
        answer = builtin.answer(skill.slug, claim.message, claim.workspace_id, standing, reported=decision.reported)
    except RequestError as error:
        task_settle(claim=claim, state=TaskState.REJECTED, text=str(error))
        return
    words = [{"role": "user", "text": message_text(claim.message)}, {"role": "assistant", "text": answer.text}]
    run_finish(
        claim=claim,
        origin=f"task:{claim.task_id}",
        prompt=message_text(claim.message),
        outcome=Outcome(state=TurnState.COMPLETED, text=answer.text, messages=words),
        text="",
        update=ArtifactUpdate(artifact=answer.artifact),
        report=answer.notice,
        report_kind=answer.notice_kind,
    )


def _full_turn(
    claim: Claim,
    skill: Skill | None,
    decision: Decision,
    approved: Review | None,
    messages: Sequence[dict[str, Any]],
) -> None:
    if skill is not None:
        run_note(claim=claim, skill=skill.slug)
    work: Work = handler(skill.handler) if skill and skill.kind == Skill.Kind.HANDLER else runner().run
    with kept(Run(claim.task_id, claim.attempt)) as run:
        turn = full_turn(claim, skill, approved, messages)
        sink = TaskSink(claim)
        try:
            outcome = execute(claim, run, turn, sink, work)
        except ReleasedError:
            outcome = Outcome(state=TurnState.FAILED, text=SERVER_RESTARTED)
        if outcome is not None:
            _finish(claim, turn, sink, outcome, skill, decision)


def _finish(
    claim: Claim, turn: Turn, sink: TaskSink, outcome: Outcome, skill: Skill | None, decision: Decision
) -> None:
    """Writes the answer, the task's state, the transcript and the report. A run that was lost writes nothing."""
    completed = outcome.state is TurnState.COMPLETED
    held = run_finish(
        claim=claim,
        origin=turn.origin,
        prompt=turn.text,
        outcome=outcome,
        text=outcome.message if completed else outcome.text,
        update=sink.rest(outcome.text if completed else None),
        report=reports.report(turn, sink, outcome, skill) if decision.reported else "",
    )
    if not held:
        logger.info("run %s of task %s ended too late", claim.attempt, claim.task_id)

"""Runs submitted tasks: claim, ask policy, do what it says, write the end. Called by Celery, with a task's id."""

import logging
import uuid
from typing import assert_never

from django.conf import settings

from a2a_server import approvals, builtin, reports
from a2a_server.errors import ContentTypeNotSupported, RequestError
from a2a_server.executing import UNEXPECTED, ReleasedError, Work, execute
from a2a_server.messages import message_text
from a2a_server.models import TaskState
from a2a_server.runs import WORKER, Run, kept
from a2a_server.services import SERVER_RESTARTED, ArtifactUpdate, Claim, run_finish, run_note, task_claim, task_settle
from a2a_server.sink import TaskSink
from a2a_server.triage import put_before_owner
from a2a_server.turns import full_turn
from trust.handlers import handler
from trust.learning.matching import fits, learned_skill, open_draft
from trust.models import CHAT, Level, Review, Skill
from trust.naming import Unnamed, named_skill
from trust.policy import Decision, Mode, decide
from trust.selectors import caller_standing, skill_of_workspace
from trust.services import request_refused, reviews_void
from volcanic.acting import acting_as
from volcanic.origins import task_origin
from volcanic.runtime.base import Outcome, Turn, TurnFailedError, TurnState
from volcanic.runtime.current import runner

logger = logging.getLogger(__name__)


def task_run(*, task_id: uuid.UUID) -> None:
    """Runs a submitted task to its next rest. Does nothing if it is not there to be claimed."""
    claim = task_claim(task_id=task_id, worker=WORKER)
    if claim is None:
        return
    # In the keeper's care from the claim on: a worker's first run loads the model's library, and on a slow machine the
    # lease would be over by then.
    with kept(Run(claim.task_id, claim.attempt)) as run:
        try:
            _follow_policy(claim, run)
        except TurnFailedError as error:
            task_settle(claim=claim, state=TaskState.FAILED, text=str(error))
        except Exception:
            logger.exception("run of task %s failed", task_id)
            task_settle(claim=claim, state=TaskState.FAILED, text=UNEXPECTED)


def _follow_policy(claim: Claim, run: Run) -> None:
    """Asks policy what the request leads to, and does that, so that no way in goes round it."""
    review = approvals.review_of(claim)
    approved = review if approvals.is_approved(claim, review) else None
    if not claim.enabled or claim.key_revoked:
        approvals.turn_away(claim, review, approvals.KEY_REVOKED if claim.enabled else approvals.DISABLED)
        return
    skill = _skill_of(claim, review)
    draft = None
    if skill is None and approved is None and claim.level is Level.PROPOSE and not _brings_more(claim):
        draft = open_draft(message_text(claim.message), caller_id=claim.caller_id)
    decision = _decide(claim, skill, review, approved=approved is not None, has_draft=draft is not None)
    if decision.mode is Mode.REJECT:
        _refuse(claim, skill, decision, review, approved)
        return
    assert not isinstance(skill, Unnamed)
    if approved is not None and (problem := approvals.problem(claim, approved, skill)):
        approvals.ask_again(claim, approved, problem)
        return
    match decision.mode:
        case Mode.TRIAGE | Mode.REVIEW:
            put_before_owner(claim, run, skill, decision, review, draft if decision.offers_draft else None)
        case Mode.BUILT_IN:
            assert skill is not None
            _answer(claim, skill, decision)
        case Mode.FULL_TURN:
            _full_turn(claim, run, skill, approved)
        case _:
            assert_never(decision.mode)


def _refuse(
    claim: Claim, skill: Skill | Unnamed | None, decision: Decision, review: Review | None, approved: Review | None
) -> None:
    """Rejects what policy refuses, and says why. What the owner approved goes back to them instead."""
    slug = skill.slug if isinstance(skill, Skill) else ""
    if approved is not None:
        gone = f"The agent has no grant of {slug} any more." if slug else f"There is no skill {approved.skill} now."
        approvals.ask_again(claim, approved, gone)
        return
    near = f" Did you mean {' or '.join(skill.near)}?" if isinstance(skill, Unnamed) and skill.near else ""
    task_settle(claim=claim, state=TaskState.REJECTED, text=decision.reason + near)
    with acting_as(f"caller {claim.caller_name}", str(claim.task_id)):
        request_refused(caller_id=claim.caller_id, skill=slug, reason=decision.reason)
    if review is not None:
        reviews_void(task=claim.task_id, reason="The agent has no grant of the skill any more.")


def _skill_of(claim: Claim, review: Review | None) -> Skill | Unnamed | None:
    """Returns the skill that the request names, or that was learned from such requests; None for a plain request.

    Of a task that the owner has before them, it is the skill that they saw. An answer that names none goes on with the
    skill that asked.
    """
    if review is not None:
        if review.skill == CHAT:
            return None
        return skill_of_workspace(claim.workspace_id, review.skill) or Unnamed(review.skill)
    # In the order in which it is read where the request comes in.
    name = claim.metadata.get("skill") or claim.message.get("metadata", {}).get("skill") or claim.last_skill
    if not name and _brings_more(claim):
        return None
    if not name:
        granted = [slug for slug in claim.grants if slug != CHAT]
        text = message_text(claim.message)
        return learned_skill(text, workspace_id=claim.workspace_id, granted=granted) if granted else None
    skill = named_skill(name, workspace_id=claim.workspace_id, grants=claim.grants)
    return None if isinstance(skill, Skill) and skill.slug == CHAT else skill


def _brings_more(claim: Claim) -> bool:
    """Tells whether a request is more than one message of words: no example of a learned skill says anything of files,
    of earlier tasks, or of what was said before."""
    parts = claim.message.get("parts", ())
    return (
        claim.first_message is not None
        or claim.has_files
        or any("raw" in part or "url" in part for part in parts)
        or bool(claim.message.get("referenceTaskIds"))
    )


def _decide(
    claim: Claim, skill: Skill | Unnamed | None, review: Review | None, *, approved: bool, has_draft: bool
) -> Decision:
    return decide(
        level=claim.level,
        grants=claim.grants,
        skill=_named(skill),
        kind=None if isinstance(skill, Unnamed) else Skill.Kind(skill.kind if skill else Skill.Kind.ASSISTANT),
        hops=claim.hops,
        max_hops=settings.MAX_HOPS,
        approved=approved,
        held=review is not None or (isinstance(skill, Skill) and _is_unbound(claim, skill)),
        has_draft=has_draft,
    )


def _is_unbound(claim: Claim, skill: Skill) -> bool:
    """Tells whether a request asks a learned skill for what its examples say nothing of: by its name, or going on."""
    return skill.by_example and (_brings_more(claim) or not fits(message_text(claim.message), skill.examples))


def _named(skill: Skill | Unnamed | None) -> str:
    """Returns what is asked for: a skill's id, what it was called where there is none, `chat` for a plain request."""
    if isinstance(skill, Unnamed):
        return skill.name
    return skill.slug if skill else CHAT


def _answer(claim: Claim, skill: Skill, decision: Decision) -> None:
    """Has a built-in skill answer a request that did not come to it in the web process: one that the owner approved."""
    run_note(claim=claim, skill=skill.slug, untold=reports.asked(claim, skill))
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
        origin=task_origin(claim.task_id),
        prompt=message_text(claim.message),
        outcome=Outcome(state=TurnState.COMPLETED, text=answer.text, messages=words),
        text="",
        update=ArtifactUpdate(artifact=answer.artifact),
        report=answer.notice,
        report_kind=answer.notice_kind,
    )


def _full_turn(claim: Claim, run: Run, skill: Skill | None, approved: Review | None) -> None:
    slug = skill.slug if skill else ""
    request = reports.asked(claim, skill)
    granted = (slug or CHAT) if approved is None else ""
    if not run_note(claim=claim, skill=slug, untold=request, granted=granted):
        task_settle(claim=claim, state=TaskState.REJECTED, text=f"The owner has taken {slug or CHAT} back.")
        return
    work: Work = handler(skill.handler) if skill and skill.kind == Skill.Kind.HANDLER else runner().run
    turn = full_turn(claim, skill, approved)
    sink = TaskSink(claim, request)
    try:
        outcome = execute(claim, run, turn, sink, work)
    except ReleasedError:
        outcome = Outcome(state=TurnState.FAILED, text=SERVER_RESTARTED)
    if outcome is not None:
        _finish(claim, turn, sink, outcome, reports.report(request, outcome, sink.uses()))


def _finish(claim: Claim, turn: Turn, sink: TaskSink, outcome: Outcome, report: str) -> None:
    """Writes the answer, the task's state, the transcript and the report. A run that was lost writes nothing."""
    completed = outcome.state is TurnState.COMPLETED
    held = run_finish(
        claim=claim,
        origin=turn.origin,
        prompt=turn.text,
        outcome=outcome,
        text=outcome.message if completed else outcome.text,
        update=sink.rest(outcome.text if completed else None),
        report=report,
    )
    if not held:
        logger.info("run %s of task %s ended too late", claim.attempt, claim.task_id)

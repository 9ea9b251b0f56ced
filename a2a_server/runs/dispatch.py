"""Dispatch of runs: claims a submitted task, asks policy, executes the policy's handling, and writes the end."""

import logging
import uuid
from typing import assert_never

from django.conf import settings

from a2a_server import builtin, reports
from a2a_server.errors import ContentTypeNotSupported, RequestError
from a2a_server.models import TaskState
from a2a_server.runs import approvals
from a2a_server.runs.leases import local_run
from a2a_server.runs.sink import TaskSink
from a2a_server.runs.triage import put_before_owner
from a2a_server.runs.turns import full_turn
from a2a_server.services import ArtifactUpdate, Run, run_finish, run_note, task_claim, task_settle
from trust.handlers import handler
from trust.learning.matching import fits, learned_skill, open_draft
from trust.models import CHAT, Level, Review, Skill
from trust.naming import UnknownSkill, named_skill
from trust.policy import Handling, Mode, decide
from trust.selectors import caller_standing, skill_of_workspace
from trust.services import request_refused, reviews_void
from volcanic.a2a_json import message_text
from volcanic.acting import acting_as
from volcanic.runtime.base import Outcome, Turn, TurnFailedError, TurnState
from volcanic.runtime.current import runner
from volcanic.turns.execution import UNEXPECTED, ReleasedError, Work, execute
from volcanic.turns.leases import SERVER_RESTARTED, WORKER, LocalRun, kept

logger = logging.getLogger(__name__)


def task_run(*, task_id: uuid.UUID) -> None:
    """Runs a submitted task until it ends or waits for somebody. Does nothing if the task can't be claimed.

    Raises no error of the run: an error ends the task as failed.
    """
    run = task_claim(task_id=task_id, worker=WORKER)
    if run is None:
        return
    # The lease is kept from the claim on. A worker's first run loads the model's library, and on a slow machine that
    # takes longer than a lease.
    with kept(local_run(run)) as local:
        try:
            _follow_policy(run, local)
        except TurnFailedError as error:
            task_settle(run=run, state=TaskState.FAILED, text=str(error))
        except Exception:
            logger.exception("%s failed", local)
            task_settle(run=run, state=TaskState.FAILED, text=UNEXPECTED)


def _follow_policy(run: Run, local: LocalRun) -> None:
    """Asks policy how to handle the request, and handles it so. Each run passes here, so no request avoids policy."""
    review = approvals.review_of(run)
    approved = review if approvals.is_approved(run, review) else None
    if not run.enabled or run.key_revoked:
        approvals.turn_away(run, review, approvals.KEY_REVOKED if run.enabled else approvals.DISABLED)
        return
    skill = _skill_of(run, review)
    draft = None
    if skill is None and approved is None and run.level is Level.PROPOSE and not _brings_more(run):
        draft = open_draft(message_text(run.message), caller_id=run.caller_id)
    handling = _decide(run, skill, review, approved=approved is not None, has_draft=draft is not None)
    if handling.mode is Mode.REJECT:
        _refuse(run, skill, handling, review, approved)
        return
    assert not isinstance(skill, UnknownSkill)
    if approved is not None and (problem := approvals.problem(run, approved, skill)):
        approvals.ask_again(run, approved, problem)
        return
    match handling.mode:
        case Mode.TRIAGE | Mode.REVIEW:
            put_before_owner(run, local, skill, handling, review, draft if handling.offers_draft else None)
        case Mode.BUILT_IN:
            assert skill is not None
            _answer(run, skill, handling)
        case Mode.FULL_TURN:
            _full_turn(run, local, skill, approved)
        case _:
            assert_never(handling.mode)


def _refuse(
    run: Run, skill: Skill | UnknownSkill | None, handling: Handling, review: Review | None, approved: Review | None
) -> None:
    """Rejects a request that policy refuses, with the reason as the status message.

    A request that the owner had approved goes back to the owner instead.
    """
    slug = skill.slug if isinstance(skill, Skill) else ""
    if approved is not None:
        gone = f"The agent has no grant of {slug} any more." if slug else f"The skill {approved.skill} is unavailable."
        approvals.ask_again(run, approved, gone)
        return
    near = f" Did you mean {' or '.join(skill.near)}?" if isinstance(skill, UnknownSkill) and skill.near else ""
    task_settle(run=run, state=TaskState.REJECTED, text=handling.reason + near)
    with acting_as(f"caller {run.caller_name}", str(run.task_id)):
        request_refused(caller_id=run.caller_id, skill=slug, reason=handling.reason)
    if review is not None:
        reviews_void(task=run.task_id, reason="The agent has no grant of the skill any more.")


def _skill_of(run: Run, review: Review | None) -> Skill | UnknownSkill | None:
    """Returns the skill that the request names, or a learned skill that fits the request; None for a plain request.

    A task with a review keeps the review's skill, since the owner saw that skill. An answer to a question that names no
    skill goes on with the skill that asked. An unknown skill gives an UnknownSkill.
    """
    if review is not None:
        if review.skill == CHAT:
            return None
        return skill_of_workspace(run.workspace_id, review.skill) or UnknownSkill(review.skill)
    # The same order as in `wire.submission_from`: the request's metadata before the message's.
    name = run.metadata.get("skill") or run.message.get("metadata", {}).get("skill") or run.last_skill
    if not name and _brings_more(run):
        return None
    if not name:
        granted = [slug for slug in run.grants if slug != CHAT]
        text = message_text(run.message)
        return learned_skill(text, workspace_id=run.workspace_id, granted=granted) if granted else None
    skill = named_skill(name, workspace_id=run.workspace_id, grants=run.grants)
    return None if isinstance(skill, Skill) and skill.slug == CHAT else skill


def _brings_more(run: Run) -> bool:
    """Returns whether a request is more than one message of text: it has files, references or earlier messages.

    The examples of learned skills are single texts, so they say nothing about such a request.
    """
    parts = run.message.get("parts", ())
    return (
        run.first_message is not None
        or run.has_files
        or any("raw" in part or "url" in part for part in parts)
        or bool(run.message.get("referenceTaskIds"))
    )


def _decide(
    run: Run, skill: Skill | UnknownSkill | None, review: Review | None, *, approved: bool, has_draft: bool
) -> Handling:
    return decide(
        level=run.level,
        grants=run.grants,
        skill=_named(skill),
        kind=None if isinstance(skill, UnknownSkill) else Skill.Kind(skill.kind if skill else Skill.Kind.ASSISTANT),
        hops=run.hops,
        max_hops=settings.MAX_HOPS,
        approved=approved,
        held=review is not None or (isinstance(skill, Skill) and _is_unbound(run, skill)),
        has_draft=has_draft,
    )


def _is_unbound(run: Run, skill: Skill) -> bool:
    """Returns whether a request for a learned skill is one that the skill's examples do not cover.

    A caller can send such a request by naming the skill, or by continuing a task.
    """
    return skill.by_example and (_brings_more(run) or not fits(message_text(run.message), skill.examples))


def _named(skill: Skill | UnknownSkill | None) -> str:
    """Returns the id of a skill, the name that the caller gave an unknown skill, or `chat` for a plain request."""
    if isinstance(skill, UnknownSkill):
        return skill.name
    return skill.slug if skill else CHAT


def _answer(run: Run, skill: Skill, handling: Handling) -> None:
    """Answers a request for a built-in skill in the worker. A request that the skill refuses is rejected.

    The web process answers most of these requests. Requests that the owner had to approve first come here.
    """
    run_note(run=run, skill=skill.slug, pending_report=reports.asked(run.message, run.first_message, skill))
    standing = caller_standing(caller_id=run.caller_id, most_unread=settings.MAX_UNREAD_MESSAGES)
    try:
        if run.has_files:
            raise ContentTypeNotSupported(f"The skill {skill.slug!r} takes text and no files.")
        answer = builtin.answer(skill.slug, run.message, run.workspace_id, standing, reported=handling.reported)
    except RequestError as error:
        task_settle(run=run, state=TaskState.REJECTED, text=str(error))
        return
    words = [{"role": "user", "text": message_text(run.message)}, {"role": "assistant", "text": answer.text}]
    run_finish(
        run=run,
        prompt=message_text(run.message),
        outcome=Outcome(state=TurnState.COMPLETED, text=answer.text, messages=words),
        text="",
        update=ArtifactUpdate(artifact=answer.artifact),
        report=answer.notice,
        report_kind=answer.notice_kind,
    )


def _full_turn(run: Run, local: LocalRun, skill: Skill | None, approved: Review | None) -> None:
    slug = skill.slug if skill else ""
    request = reports.asked(run.message, run.first_message, skill)
    granted = (slug or CHAT) if approved is None else ""
    if not run_note(run=run, skill=slug, pending_report=request, granted=granted):
        if not task_settle(run=run, state=TaskState.REJECTED, text=f"The owner has taken {slug or CHAT} back."):
            logger.info("%s stopped: its lease was lost", local)
        return
    work: Work = handler(skill.handler) if skill and skill.kind == Skill.Kind.HANDLER else runner().run
    turn = full_turn(run, skill, approved)
    sink = TaskSink(run, request)
    try:
        outcome = execute(local, turn, sink, work)
    except ReleasedError:
        outcome = Outcome(state=TurnState.FAILED, text=SERVER_RESTARTED)
    if outcome is not None:
        _finish(run, turn, sink, outcome, reports.report(request, outcome, sink.uses()))


def _finish(run: Run, turn: Turn, sink: TaskSink, outcome: Outcome, report: str) -> None:
    """Writes the answer, the task's state, the transcript and the report. A run that lost its task writes nothing."""
    completed = outcome.state is TurnState.COMPLETED
    held = run_finish(
        run=run,
        prompt=turn.text,
        outcome=outcome,
        text=outcome.message if completed else outcome.text,
        update=sink.rest(outcome.text if completed else None),
        report=report,
    )
    if not held:
        logger.info("run %s of task %s ended too late", run.attempt, run.task_id)

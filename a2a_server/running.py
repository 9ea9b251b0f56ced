"""Runs submitted tasks: claim, ask policy, run the turn, write the end. Called by Celery, with a task's id."""

import asyncio
import logging
import uuid
from concurrent.futures import CancelledError
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string

from a2a_server import selectors
from a2a_server.files import files_store
from a2a_server.models import TaskState
from a2a_server.runs import WORKER, Run, StopReason, drive, kept
from a2a_server.services import SERVER_RESTARTED, Claim, run_finish, task_claim, task_settle
from a2a_server.sink import RunLostError, TaskSink
from trust.models import CHAT
from trust.policy import Decision, Mode, decide
from volcanic.redaction import redact
from volcanic.runtime import tools
from volcanic.runtime.base import Inbound, Outcome, Runner, Turn, TurnFailedError, TurnState
from volcanic.runtime.prompt import frame_inbound
from volcanic.selectors import session_history
from volcanic.toolbox.notify import NOTIFY_OWNER

logger = logging.getLogger(__name__)

UNEXPECTED = "The run failed unexpectedly."


@cache
def runner() -> Runner:
    """Returns this process's runner, as RUNNER names it."""
    made: Runner = import_string(settings.RUNNER)()
    return made


def task_run(*, task_id: uuid.UUID) -> None:
    """Runs a submitted task to its next rest. Does nothing if it is not there to be claimed."""
    claim = task_claim(task_id=task_id, worker=WORKER)
    if claim is None:
        return
    try:
        decision = _decide(claim)
        if decision.mode is Mode.REJECT:
            task_settle(claim=claim, state=TaskState.REJECTED, text=decision.reason)
        else:
            _full_turn(claim)
    except TurnFailedError as error:
        task_settle(claim=claim, state=TaskState.FAILED, text=str(error))
    except Exception:
        logger.exception("run of task %s failed", task_id)
        task_settle(claim=claim, state=TaskState.FAILED, text=UNEXPECTED)


def _decide(claim: Claim) -> Decision:
    if not claim.enabled:
        return Decision(Mode.REJECT, "The owner has disabled this agent.")
    skill = claim.metadata.get("skill") or claim.message.get("metadata", {}).get("skill") or CHAT
    return decide(level=claim.level, granted=claim.granted, skill=str(skill))


def _full_turn(claim: Claim) -> None:
    with kept(Run(claim.task_id, claim.attempt)) as run:
        turn = _turn_of(claim)
        _drive(claim, run, turn)


def _drive(claim: Claim, run: Run, turn: Turn) -> None:
    sink = TaskSink(claim)
    try:
        outcome = drive(run, lambda: _run(turn, sink))
    except (CancelledError, RunLostError):
        if run.stopped is not StopReason.SHUTDOWN:
            logger.info("run %s of task %s stopped: no longer its own", claim.attempt, claim.task_id)
            return
        outcome = Outcome(state=TurnState.FAILED, text=SERVER_RESTARTED)
    except TurnFailedError as error:
        outcome = Outcome(state=TurnState.FAILED, text=redact(str(error)))
    except Exception:
        logger.exception("run of task %s failed", claim.task_id)
        outcome = Outcome(state=TurnState.FAILED, text=UNEXPECTED)
    _finish(claim, turn, sink, outcome)


async def _run(turn: Turn, sink: TaskSink) -> Outcome:
    try:
        async with asyncio.timeout((turn.deadline - timezone.now()).total_seconds()) as limit:
            return await runner().run(turn, sink)
    except TimeoutError:
        if not limit.expired():
            raise  # a time-out of the runner's own, not of the turn
        raise TurnFailedError(f"The run took longer than {settings.TURN_TIMEOUT_SECONDS} seconds.") from None
    finally:
        await sink.close()


def _finish(claim: Claim, turn: Turn, sink: TaskSink, outcome: Outcome) -> None:
    """Writes the answer, the task's state and the transcript. A run that was lost writes nothing."""
    completed = outcome.state is TurnState.COMPLETED
    held = run_finish(
        claim=claim,
        origin=turn.origin,
        prompt=turn.text,
        outcome=outcome,
        text=outcome.message if completed else outcome.text,
        update=sink.rest(outcome.text if completed else None),
    )
    if not held:
        logger.info("run %s of task %s ended too late", claim.attempt, claim.task_id)


def _turn_of(claim: Claim) -> Turn:
    origin = f"task:{claim.task_id}"
    history, answers = session_history(session_id=claim.session_id, origin=origin) if claim.has_history else ([], None)
    text = message_text(claim.message)
    workspace = Path(settings.WORKSPACES_DIR) / claim.workspace_slug
    references = claim.message.get("referenceTaskIds", ())
    inbound = Inbound(caller=claim.caller_name, scope=f"a2a-{claim.caller_id}", notifier=claim.notify_owner)
    allowed = tools.allowed(inbound)
    files = files_store(task_id=claim.task_id, workspace=workspace, caller=claim.caller_name) if claim.has_files else []
    return Turn(
        session_id=claim.session_id,
        origin=origin,
        workspace=workspace,
        prompt=frame_inbound(
            caller=claim.caller_name,
            text=text,
            accepted_output_modes=claim.accepted_output_modes,
            references=selectors.references_describe(task_ids=references, caller_id=claim.caller_id),
            notify_owner=NOTIFY_OWNER in allowed,
            files=[f"{file.path} ({file.size} bytes, {file.media_type})" for file in files],
        ),
        text=text,
        tools=allowed,
        deadline=timezone.now() + timedelta(seconds=settings.TURN_TIMEOUT_SECONDS),
        history=history,
        answers=answers,
        message=claim.message,
        workspace_id=claim.workspace_id,
        inbound=inbound,
    )


def message_text(message: dict[str, Any]) -> str:
    """Returns a message's parts as text for the assistant: text as it is, data as JSON."""
    return "\n".join(selectors.part_text(part) for part in message.get("parts", ()))

"""Runs one turn on whatever runs turns, within its time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError

from django.utils import timezone

from a2a_server.runs import Run, StopReason, drive
from a2a_server.services import Claim
from a2a_server.sink import RunLostError, TaskSink
from volcanic.redaction import redact
from volcanic.runtime.base import Outcome, Sink, Turn, TurnFailedError, TurnState

logger = logging.getLogger(__name__)

UNEXPECTED = "The run failed unexpectedly."

Work = Callable[[Turn, Sink], Awaitable[Outcome]]


class ReleasedError(Exception):
    """The process goes away in the middle of a run."""


def execute(claim: Claim, run: Run, turn: Turn, sink: Sink, work: Work) -> Outcome | None:
    """Runs a turn within its time and returns how it ended, failures too; None when the task is not this run's any
    more. Raises ReleasedError when the process goes away."""
    try:
        return drive(run, lambda: _limited(turn, sink, work))
    except (CancelledError, RunLostError) as error:
        if run.stopped is StopReason.SHUTDOWN:
            raise ReleasedError from None
        if run.stopped is None and isinstance(error, CancelledError):
            # A tool or a library canceled itself: the task is ours still.
            logger.exception("run of task %s was canceled from within", claim.task_id)
            return Outcome(state=TurnState.FAILED, text=UNEXPECTED)
        logger.info("run %s of task %s stopped: no longer its own", claim.attempt, claim.task_id)
        return None
    except TurnFailedError as error:
        return Outcome(state=TurnState.FAILED, text=redact(str(error)))
    except Exception:
        logger.exception("run of task %s failed", claim.task_id)
        return Outcome(state=TurnState.FAILED, text=UNEXPECTED)


async def _limited(turn: Turn, sink: Sink, work: Work) -> Outcome:
    seconds = (turn.deadline - timezone.now()).total_seconds()
    try:
        async with asyncio.timeout(seconds) as limit:
            return await work(turn, sink)
    except TimeoutError:
        if not limit.expired():
            raise  # a time-out of the runner's own, not of the turn
        raise TurnFailedError(f"The run took longer than {round(seconds)} seconds.") from None
    finally:
        if isinstance(sink, TaskSink):
            await sink.close()

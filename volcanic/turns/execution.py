"""Execution of one turn, on the process's loop and within its time limit."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from typing import Protocol, runtime_checkable

from django.utils import timezone

from volcanic.redaction import redact
from volcanic.runtime.base import Outcome, Sink, Turn, TurnFailedError, TurnState
from volcanic.turns.leases import LocalRun, StopReason, drive

logger = logging.getLogger(__name__)

UNEXPECTED = "The run failed unexpectedly."

Work = Callable[[Turn, Sink], Awaitable[Outcome]]


class RunLostError(Exception):
    """The run has lost its lease: canceled, expired or taken over. It must stop and write nothing."""


class ReleasedError(Exception):
    """The process goes away in the middle of a run."""


@runtime_checkable
class ClosingSink(Protocol):
    """A sink that writes in the background."""

    async def close(self) -> None:
        """Waits until nothing is being written any more."""


def execute(run: LocalRun, turn: Turn, sink: Sink, work: Work) -> Outcome | None:
    """Runs a turn until its deadline at most and returns how it ended, failures too; None when the run was lost.

    Raises ReleasedError when the process goes away.
    """
    try:
        return drive(run, lambda: _limited(turn, sink, work))
    except (CancelledError, RunLostError) as error:
        if run.stopped is StopReason.SHUTDOWN:
            raise ReleasedError from None
        if run.stopped is None and isinstance(error, CancelledError):
            # A tool or a library canceled itself: the lease is still held.
            logger.exception("%s was canceled from within", run)
            return Outcome(state=TurnState.FAILED, text=UNEXPECTED)
        logger.info("%s stopped: its lease was lost", run)
        return None
    except TurnFailedError as error:
        return Outcome(state=TurnState.FAILED, text=redact(str(error)))
    except Exception:
        logger.exception("%s failed", run)
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
        if isinstance(sink, ClosingSink):
            await sink.close()

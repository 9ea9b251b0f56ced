"""The runs that this worker process holds: their leases, and stopping them when they are lost."""

import asyncio
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from a2a_server.services import leases_renew, runs_lost
from volcanic.loop import get_loop, run_on_loop

logger = logging.getLogger(__name__)

T = TypeVar("T")

WORKER = f"{socket.gethostname()}:{os.getpid()}"[-100:]
_LOOK_EVERY_SECONDS = 0.5


class StopReason(StrEnum):
    """Why a run was stopped from outside."""

    LOST = "lost"
    SHUTDOWN = "shutdown"


@dataclass(eq=False)
class Run:
    """One run in this process."""

    task_id: uuid.UUID
    attempt: int
    stopped: StopReason | None = None
    _task: "asyncio.Task[Any] | None" = field(default=None, repr=False)

    def stop(self, reason: StopReason) -> None:
        """Cancels the run's coroutine, once. From any thread."""
        if self.stopped is None:
            self.stopped = reason
            get_loop().call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def drive(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` as this run's coroutine; stopped before it began, it does not begin."""
        self._task = asyncio.current_task()
        if self.stopped is not None:
            work.close()
            raise asyncio.CancelledError
        return await work


class Keeper:
    """Keeps the leases of this process's runs, and stops those that it holds no more.

    A thread of its own, so that neither a busy loop nor a blocked tool lets a lease pass. It asks the database and
    not Redis whether a run was canceled, so that a cancel reaches it whatever is down.
    """

    def __init__(self) -> None:
        self._runs: set[Run] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, run: Run) -> None:
        """Takes a run into care."""
        with self._changed:
            self._runs.add(run)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)
                self._thread.start()
            self._changed.notify()

    def remove(self, run: Run) -> None:
        """Lets a finished run go."""
        with self._changed:
            self._runs.discard(run)

    def stop_all(self, reason: StopReason) -> None:
        """Stops every run: the process is going away."""
        with self._changed:
            runs = tuple(self._runs)
        for run in runs:
            run.stop(reason)

    def _keep(self) -> None:
        renew_at = 0.0
        while True:
            with self._changed:
                while not self._runs:
                    self._changed.wait()
            # Most runs are over before the first look.
            time.sleep(_LOOK_EVERY_SECONDS)
            with self._changed:
                runs = {(run.task_id, run.attempt): run for run in self._runs}
            if runs:
                renew_at = self._look(runs, renew_at)

    def _look(self, runs: dict[tuple[uuid.UUID, int], Run], renew_at: float) -> float:
        """Stops lost runs, and renews leases when it is time. Returns when it is time again."""
        try:
            if time.monotonic() >= renew_at:
                leases_renew(runs=list(runs))
                renew_at = time.monotonic() + settings.LEASE_SECONDS / 3
            for key in runs_lost(runs=list(runs)):
                runs[key].stop(StopReason.LOST)
        except (DatabaseError, InterfaceError) as error:
            # A lease that passes meanwhile is for the sweep to judge, and for the next look to find out.
            logger.warning("could not look after runs: %s", error)
        finally:
            connection.close()  # back to the pool
        return renew_at


keeper = Keeper()


@contextmanager
def kept(run: Run) -> Iterator[Run]:
    """Has the keeper look after a run for the time of the block."""
    keeper.add(run)
    try:
        yield run
    finally:
        keeper.remove(run)


def drive(run: Run, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs `work` on the process's loop for a Celery thread, and returns what it returns.

    Raises what it raises; concurrent.futures.CancelledError when the run was stopped (`run.stopped` says why).
    """
    return run_on_loop(run.drive(work()))

"""Leases: a run is this process's for as long as the process says so in time, and is stopped when it is lost."""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from volcanic.aio.loop import get_loop, run_on_loop

logger = logging.getLogger(__name__)

T = TypeVar("T")

# This process, as rows name it.
WORKER = f"{socket.gethostname()}:{os.getpid()}"[-100:]
SERVER_RESTARTED = "server restarted"
_LOOK_EVERY_SECONDS = 0.5

# A run's key and its attempt.
RunKey = tuple[Any, int]


def lease_duration() -> timedelta:
    """Returns how long a run is its worker's without a sign of life: LEASE_SECONDS."""
    return timedelta(seconds=settings.LEASE_SECONDS)


class StopReason(StrEnum):
    """Why a run was stopped from outside."""

    LOST = "lost"
    SHUTDOWN = "shutdown"


@dataclass(frozen=True)
class LeaseKind:
    """One kind of run, such as tasks or prompts, and how its leases are kept in the database.

    The rows of `table` have the columns id, attempt, state and lease_expires_at. A row in `running_state` is leased to
    the worker whose attempt it names.
    """

    # Named in logs.
    name: str
    table: str
    running_state: str
    # The SQL type of the table's id.
    key_type: str

    def renew(self, runs: Collection[RunKey]) -> None:
        """Renews the leases of the runs that still hold theirs. One statement."""
        with connection.cursor() as cursor:
            cursor.execute(self._sql(_RENEW), {**_arrays(runs), "lease": timezone.now() + lease_duration()})

    def lost(self, runs: Collection[RunKey]) -> set[RunKey]:
        """Returns the runs that no longer hold their lease: canceled, expired or taken over. One statement."""
        with connection.cursor() as cursor:
            cursor.execute(self._sql(_LOST), _arrays(runs))
            return {(row[0], row[1]) for row in cursor.fetchall()}

    def _sql(self, template: str) -> str:
        return template.format(table=self.table, state=self.running_state, key=self.key_type)


# A run that lost its lease is left out, since its attempt or state no longer matches.
_RENEW = """
    UPDATE {table} AS held SET lease_expires_at = %(lease)s
    FROM unnest(%(keys)s::{key}[], %(attempts)s::int[]) AS run (id, attempt)
    WHERE held.id = run.id AND held.attempt = run.attempt AND held.state = '{state}'
"""
_LOST = """
    SELECT run.id, run.attempt
    FROM unnest(%(keys)s::{key}[], %(attempts)s::int[]) AS run (id, attempt)
    LEFT JOIN {table} AS held ON held.id = run.id AND held.attempt = run.attempt AND held.state = '{state}'
    WHERE held.id IS NULL
"""


def _arrays(runs: Collection[RunKey]) -> dict[str, Any]:
    return {"keys": [run[0] for run in runs], "attempts": [run[1] for run in runs]}


@dataclass(eq=False)
class LocalRun:
    """One run in this process."""

    kind: LeaseKind
    key: Hashable
    attempt: int
    stopped: StopReason | None = None
    _task: "asyncio.Task[Any] | None" = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"run {self.attempt} of {self.kind.name} {self.key}"

    def stop(self, reason: StopReason) -> None:
        """Cancels the run's coroutine, once. From any thread."""
        if self.stopped is None:
            self.stopped = reason
            get_loop().call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def drive(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs `work` as this run's coroutine. A run that was stopped before does not begin."""
        self._task = asyncio.current_task()
        if self.stopped is not None:
            work.close()
            raise asyncio.CancelledError
        return await work


class LeaseKeeper:
    """Renews the leases of this process's runs, and stops the runs that have lost theirs.

    It has a thread of its own, so that neither a busy loop nor a blocked tool lets a lease pass. It asks the database
    and not Redis whether a run was canceled, so that a cancel arrives while Redis is down.
    """

    def __init__(self) -> None:
        self._runs: set[LocalRun] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, run: LocalRun) -> None:
        """Takes a run into care."""
        with self._changed:
            self._runs.add(run)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._keep, name="lease keeper", daemon=True)
                self._thread.start()
            self._changed.notify()

    def remove(self, run: LocalRun) -> None:
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
                runs = tuple(self._runs)
            if runs:
                renew_at = self._look(runs, renew_at)

    def _look(self, runs: Collection[LocalRun], renew_at: float) -> float:
        """Stops lost runs, and renews leases when it is time. Returns when it is time again."""
        renews = time.monotonic() >= renew_at
        try:
            for kind in {run.kind for run in runs}:
                of_kind = {(run.key, run.attempt): run for run in runs if run.kind is kind}
                if renews:
                    kind.renew(of_kind)
                for key in kind.lost(of_kind):
                    of_kind[key].stop(StopReason.LOST)
            if renews:
                renew_at = time.monotonic() + settings.LEASE_SECONDS / 3
        except (DatabaseError, InterfaceError) as error:
            # A lease that passes meanwhile is for the sweep to judge, and for the next look to find out.
            logger.warning("could not look after runs: %s", error)
        finally:
            connection.close()  # back to the pool
        return renew_at


lease_keeper = LeaseKeeper()


@contextmanager
def kept(run: LocalRun) -> Iterator[LocalRun]:
    """Has the lease keeper look after a run for the time of the block."""
    lease_keeper.add(run)
    try:
        yield run
    finally:
        lease_keeper.remove(run)


def drive(run: LocalRun, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs `work` on the process's loop for a Celery thread, and returns what it returns.

    Raises what it raises; concurrent.futures.CancelledError when the run was stopped (`run.stopped` says why).
    """
    return run_on_loop(run.drive(work()))


def stop_after_grace() -> None:
    """Gives this process's runs SHUTDOWN_GRACE_SECONDS to end by themselves, then stops them. Returns at once."""
    timer = threading.Timer(settings.SHUTDOWN_GRACE_SECONDS, lease_keeper.stop_all, [StopReason.SHUTDOWN])
    timer.daemon = True
    timer.start()

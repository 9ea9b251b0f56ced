"""Leased work: jobs in database rows that worker processes take, retry, and give up at last.

One design serves everything that is sent until it arrives: webhooks, notifications, and later watches.

- The jobs of one queue (a webhook, a channel) are done one at a time. Queues don't wait for each other.
- A Celery message only says "look at this queue".
- A job is a coroutine on the process's loop, so a receiver that hangs holds no thread.
- A job is done at least once. A process that dies leaves a lease that passes; the sweep finds the job then.
"""

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from volcanic.aio.db import run_db
from volcanic.aio.loop import get_loop
from volcanic.celery import publish
from volcanic.text import cut

logger = logging.getLogger(__name__)

K = TypeVar("K")

MAX_ERROR = 500
# A retry that is due within this time is not left to the sweep.
SOON_SECONDS = 6.0

# Takes the job at the head of a queue. Of two processes that race, the second waits for the row, finds it leased and
# takes nothing.
_CLAIM = """
    UPDATE {table} SET attempt = attempt + 1, lease_expires_at = %(lease)s
    WHERE id = ({head}) AND state = 'pending' AND next_try_at <= %(now)s
      AND (lease_expires_at IS NULL OR lease_expires_at < %(now)s)
    RETURNING id, attempt, retries
"""

# This process is a Celery worker: it can serve a queue by itself, without a message and a thread.
_in_worker = False


def note_worker() -> None:
    """Notes that this process is a Celery worker."""
    global _in_worker
    _in_worker = True


@dataclass(frozen=True)
class Job(Generic[K]):
    """A claimed row. `attempt` is the fencing number: a process that was too slow can't write any more."""

    queue: K
    pk: int
    attempt: int
    retries: int


@dataclass(frozen=True)
class Result:
    """What came of a job: done, unless there is an `error`. `values` are further columns to write."""

    error: str = ""
    # Trying again would not help.
    permanent: bool = False
    values: Mapping[str, Any] = field(default_factory=dict)


class LeasedWork(ABC, Generic[K]):
    """The queues of one kind of work. Made once in each process; a queue is named by a `K`.

    The rows are of a `LeasedRow` model with a `state` that is "pending" until the job is done or given up.
    """

    # The Celery task that has a worker look at a queue. It is given the queue's name as its arguments.
    task: str
    model: type[Model]
    # SQL for the id of the row that is next in a queue, with the parameters that `parameters` returns.
    head: str
    lease_seconds: float
    # Seconds to wait before each retry. After the last one the job is given up.
    backoff: Sequence[float]
    # How far a wait may be off, so that many jobs that failed together are not retried together.
    jitter: float = 0.0
    # Jobs that this process does at a time.
    max_running: int

    def __init__(self) -> None:
        # Queues that this process serves, and those of them that were asked for once more meanwhile.
        self._busy: set[K] = set()
        self._again: set[K] = set()
        self._places = asyncio.Semaphore(self.max_running)

    @abstractmethod
    def parameters(self, queue: K) -> dict[str, Any]:
        """Returns the parameters of `head` for a queue."""

    @abstractmethod
    def due(self, *, limit: int = 500) -> list[K]:
        """Returns the queues whose next job is due and in no process's hands."""

    @abstractmethod
    async def do(self, job: Job[K]) -> Result:
        """Does a job within the lease."""

    @abstractmethod
    def give_up(self, job: Job[K], error: str) -> None:
        """Writes down that a job is given up, and tells of it. In the transaction that notes its last failure."""

    def enqueue(self, queue: K) -> None:
        """Has a queue served: by this process if it is a worker, else by way of a Celery message. After commit."""
        if _in_worker:
            self.serve_here(queue)
        else:
            publish(self.task, *(queue if isinstance(queue, tuple) else (queue,)))

    def serve_here(self, queue: K) -> None:
        """Has this process's loop serve a queue. From any thread; returns at once."""
        asyncio.run_coroutine_threadsafe(self.serve(queue), get_loop())

    def sweep(self) -> int:
        """Has each queue served that has been forgotten. Returns how many there were."""
        queues = self.due()
        for queue in queues:
            self.enqueue(queue)
        return len(queues)

    async def serve(self, queue: K) -> None:
        """Does the jobs of a queue, one after the other, until no job is due or a job fails."""
        if queue in self._busy:
            self._again.add(queue)
            return
        self._busy.add(queue)
        try:
            goes_on = True
            while goes_on:
                self._again.discard(queue)
                async with self._places:
                    goes_on = await self._do_next(queue)
                # What was added meanwhile found this queue busy, and left.
                goes_on = goes_on or queue in self._again
        except Exception:
            logger.exception("%s of %s broke off", self.task, queue)
        finally:
            self._busy.discard(queue)
            self._again.discard(queue)

    async def _do_next(self, queue: K) -> bool:
        """Does the job at the head of a queue. Returns whether to look for the next one."""
        job = await run_db(self.claim, queue)
        if job is None:
            return False
        try:
            result = await self.do(job)
        except Exception as error:
            # A job that breaks its own code is retried and given up like any other, or it would be begun for ever.
            logger.exception("%s of %s broke", self.task, queue)
            result = Result(f"Unexpected: {type(error).__name__}")
        wait = await run_db(self.settle, job, result)
        if wait is not None and wait <= SOON_SECONDS:
            asyncio.get_running_loop().call_later(wait, self.serve_here, queue)
        return not result.error

    def claim(self, queue: K) -> Job[K] | None:
        """Takes the job at the head of a queue under a lease. Returns None if it is not due or not free. One
        statement."""
        now = timezone.now()
        values = {"now": now, "lease": now + timedelta(seconds=self.lease_seconds), **self.parameters(queue)}
        with connection.cursor() as cursor:
            cursor.execute(_CLAIM.format(table=self.model._meta.db_table, head=self.head), values)
            row = cursor.fetchone()
        return None if row is None else Job(queue, *row)

    def settle(self, job: Job[K], result: Result) -> float | None:
        """Writes down what came of a job. Returns after how many seconds it is tried again, None if it is not.

        Nothing is written if the lease passed and another process took the job.
        """
        now = timezone.now()
        if not result.error:
            self._update(job, state="delivered", delivered_at=now, last_error="", **result.values)
            return None
        noted = {"retries": job.retries + 1, "last_error": cut(result.error, MAX_ERROR), **result.values}
        if result.permanent or job.retries >= len(self.backoff):
            with transaction.atomic():
                if self._update(job, **noted):
                    self.give_up(job, result.error)
            return None
        wait = self.backoff[job.retries] * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311
        logger.info("%s of %s failed, next try in %.0f s: %s", self.task, job.queue, wait, noted["last_error"])
        held = self._update(job, next_try_at=now + timedelta(seconds=wait), **noted)
        return wait if held else None

    def _update(self, job: Job[K], **values: Any) -> bool:
        rows = self.model._default_manager.filter(pk=job.pk, attempt=job.attempt, state="pending")
        return bool(rows.update(lease_expires_at=None, **values))


def retry_now() -> dict[str, datetime | int]:
    """Returns the columns of a job that is to be tried at once, from its first try on."""
    return {"retries": 0, "next_try_at": timezone.now()}

"""Leased work for tests: jobs in the table of notifications, and functions to claim and read them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from django.utils import timezone

from volcanic.aio.db import run_db
from volcanic.leased_work import Job, LeasedWork, Result
from volcanic.models import NotificationDelivery

Do = Callable[[Job[str]], Awaitable[Result]]
AddJob = Callable[..., int]
LEASE = 30.0
FAILED = Result("refused")


class Chores(LeasedWork[str]):
    """Stands in for the work of one process. A queue is a channel, whose rows go strictly in their order.

    `todo` is what a job does; `done` are the jobs that were begun, by their texts.
    """

    task = "tests.chores"
    model = NotificationDelivery
    head = """
        SELECT id FROM volcanic_notificationdelivery WHERE channel = %(channel)s AND state = 'pending'
        ORDER BY id LIMIT 1
    """
    lease_seconds = LEASE
    backoff: Sequence[float] = (10, 60, 300)
    max_running = 3

    def __init__(self, todo: Do | None = None) -> None:
        super().__init__()
        self.todo = todo
        self.done: list[str] = []
        self.served: list[str] = []
        self.given_up: list[tuple[int, str]] = []

    def parameters(self, queue: str) -> dict[str, Any]:
        return {"channel": queue}

    def due(self, *, limit: int = 500) -> list[str]:
        now = timezone.now()
        heads = NotificationDelivery.objects.filter(state="pending").order_by("channel", "id").distinct("channel")
        return [
            row.channel
            for row in heads
            if row.next_try_at <= now and (row.lease_expires_at is None or row.lease_expires_at < now)
        ]

    async def do(self, job: Job[str]) -> Result:
        row = await NotificationDelivery.objects.aget(pk=job.pk)
        self.done.append(row.text)
        return Result() if self.todo is None else await self.todo(job)

    def give_up(self, job: Job[str], error: str) -> None:
        self.given_up.append((job.pk, error))
        NotificationDelivery.objects.filter(pk=job.pk).update(state="failed")


class Hanging:
    """What a job does that hangs until `over` is set; `begun` tells of each that begins, in `queues`."""

    def __init__(self, *queues: str) -> None:
        self.hangs = queues
        self.queues: list[str] = []
        self.begun = asyncio.Semaphore(0)
        self.over = asyncio.Event()

    async def __call__(self, job: Job[str]) -> Result:
        if job.queue in self.hangs:
            self.queues.append(job.queue)
            self.begun.release()
            await self.over.wait()
        return Result()


async def row_of(key: int) -> NotificationDelivery:
    """Returns the row of a job."""
    return await NotificationDelivery.objects.aget(pk=key)


async def claimed(work: Chores, queue: str = "one") -> Job[str]:
    """Returns the first job of a queue, claimed."""
    job = await run_db(work.claim, queue)
    assert job is not None
    return job

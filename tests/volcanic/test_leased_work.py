"""Leased work: who does a job, when it is tried again, and when it is given up. On the table of notifications."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from volcanic import leased_work
from volcanic.aio.db import run_db
from volcanic.leased_work import MAX_ERROR, SOON_SECONDS, Job, LeasedWork, Result, retry_now
from volcanic.models import NotificationDelivery, Workspace

Do = Callable[[Job[str]], Awaitable[Result]]
Add = Callable[..., int]
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


@pytest.fixture
def add(transactional_db: None, workspace: Workspace) -> Add:
    """Adds a job to a queue, and returns its key."""

    def add(queue: str = "one", text: str = "job") -> int:
        return NotificationDelivery.objects.create(workspace=workspace, channel=queue, url="x", text=text).pk

    return add


async def _row(key: int) -> NotificationDelivery:
    return await NotificationDelivery.objects.aget(pk=key)


async def _claim(work: Chores, queue: str = "one") -> Job[str]:
    job = await run_db(work.claim, queue)
    assert job is not None
    return job


async def test_the_jobs_of_a_queue_are_done_in_their_order(add: Add) -> None:
    keys = [await run_db(add, "one", str(number)) for number in range(3)]
    other = await run_db(add, "two", "other")
    work = Chores()
    await work.serve("one")
    assert work.done == ["0", "1", "2"]
    for key in keys:
        row = await _row(key)
        assert (row.state, row.attempt, row.retries, row.last_error) == ("delivered", 1, 0, "")
        assert row.delivered_at is not None
        assert row.lease_expires_at is None
    assert (await _row(other)).state == "pending"


async def test_one_process_at_a_time(add: Add) -> None:
    """While one is at work, another finds the job leased and leaves: nothing is done twice."""
    for text in ("first", "second"):
        await run_db(add, "one", text)
    hanging = Hanging("one")
    work, other = Chores(hanging), Chores()
    serving = asyncio.create_task(work.serve("one"))
    await hanging.begun.acquire()
    await other.serve("one")
    assert other.done == await run_db(other.due) == []
    hanging.over.set()
    await serving
    assert work.done == ["first", "second"]


async def test_of_many_that_race_one_gets_the_job(add: Add) -> None:
    await run_db(add)
    claims = await asyncio.gather(*[run_db(Chores().claim, "one") for _ in range(8)])
    assert len([claim for claim in claims if claim]) == 1


async def test_a_message_that_comes_twice_has_a_job_done_once(add: Add) -> None:
    await run_db(add)
    work = Chores()
    await asyncio.gather(*[work.serve("one") for _ in range(8)])
    assert work.done == ["job"]


async def test_what_comes_while_a_queue_is_served_is_done_too(add: Add) -> None:
    """Its message found the queue busy, and it is not left to the sweep: not even behind a job that failed."""
    results = {"first": Result(), "second": Result("refused", permanent=True), "third": Result()}

    async def todo(job: Job[str]) -> Result:
        text = (await _row(job.pk)).text
        if text == "second":
            await run_db(add, "one", "third")
            await work.serve("one")
        return results[text]

    work = Chores(todo)
    for text in ("first", "second"):
        await run_db(add, "one", text)
    await work.serve("one")
    assert work.done == ["first", "second", "third"]


async def test_what_a_dead_process_left_is_found_when_its_lease_has_passed(add: Add) -> None:
    key = await run_db(add)
    work = Chores()
    with time_machine.travel(timezone.now(), tick=False) as clock:
        await _claim(Chores())  # and that process is gone
        await work.serve("one")
        assert work.done == await run_db(work.due) == []
        clock.shift(LEASE + 1)
        assert await run_db(work.due) == ["one"]
        await work.serve("one")
    row = await _row(key)
    assert (row.state, row.attempt, row.retries) == ("delivered", 2, 0)


@pytest.mark.parametrize("result", [Result(), FAILED, Result("refused", permanent=True)])
async def test_a_try_that_ends_too_late_writes_nothing(add: Add, result: Result) -> None:
    """Neither an end nor a failure, while the process that came after it is at work and when that is done."""
    key = await run_db(add)
    work = Chores()
    with time_machine.travel(timezone.now(), tick=False) as clock:
        late = await _claim(work)
        clock.shift(LEASE + 1)
        again = await _claim(work)
        assert (late.attempt, again.attempt) == (1, 2)
        before = await NotificationDelivery.objects.filter(pk=key).values().aget()
        assert await run_db(work.settle, late, result) is None
        assert await NotificationDelivery.objects.filter(pk=key).values().aget() == before
        await run_db(work.settle, again, Result())
        after = await NotificationDelivery.objects.filter(pk=key).values().aget()
        assert after["state"] == "delivered"
        assert await run_db(work.settle, late, result) is None
        assert await NotificationDelivery.objects.filter(pk=key).values().aget() == after
    assert work.given_up == []


async def test_retries_and_then_it_is_given_up(add: Add) -> None:
    """After each wait of the table, not a moment before; the jobs behind it wait, and go on when it is given up."""
    key = await run_db(add)
    await run_db(add, "one", "behind")

    async def todo(job: Job[str]) -> Result:
        return FAILED if job.pk == key else Result()

    work = Chores(todo)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        for number, wait in enumerate(work.backoff, 1):
            await work.serve("one")
            row = await _row(key)
            assert (row.state, row.attempt, row.retries, row.last_error) == ("pending", number, number, "refused")
            assert row.next_try_at == timezone.now() + timedelta(seconds=wait)
            assert row.lease_expires_at is None
            clock.shift(wait - 0.001)
            assert await run_db(work.due) == []
            assert await run_db(work.claim, "one") is None
            clock.shift(0.001)
            assert await run_db(work.due) == ["one"]
        await work.serve("one")
        row = await _row(key)
        assert (row.state, row.attempt, row.retries, row.last_error) == ("failed", 4, 4, "refused")
        assert work.given_up == [(key, "refused")]
        await work.serve("one")
    assert work.done == ["job"] * 4 + ["behind"]


async def test_what_can_not_succeed_is_given_up_at_once(add: Add) -> None:
    key = await run_db(add)
    work = Chores()
    assert await run_db(work.settle, await _claim(work), Result("no such host", permanent=True)) is None
    row = await _row(key)
    assert (row.state, row.retries, work.given_up) == ("failed", 1, [(key, "no such host")])


async def test_giving_up_and_its_last_failure_are_written_together(add: Add) -> None:
    """Where telling of it fails, nothing is noted either: when the lease has passed, it is done again."""
    key = await run_db(add)

    class Speechless(Chores):
        def give_up(self, job: Job[str], error: str) -> None:
            raise RuntimeError("nobody can be told")

    work = Speechless()
    with pytest.raises(RuntimeError, match="nobody"):
        await run_db(work.settle, await _claim(work), Result("refused", permanent=True))
    row = await _row(key)
    assert (row.state, row.retries, row.last_error) == ("pending", 0, "")
    assert row.lease_expires_at is not None


async def test_begun_anew_it_has_all_its_tries_again(add: Add) -> None:
    key = await run_db(add)
    work = Chores()
    await NotificationDelivery.objects.filter(pk=key).aupdate(retries=3)
    anew = retry_now()
    await NotificationDelivery.objects.filter(pk=key).aupdate(retries=anew["retries"], next_try_at=anew["next_try_at"])
    assert await run_db(work.settle, await _claim(work), FAILED) == 10
    assert work.given_up == []


async def test_the_waits_are_spread(add: Add) -> None:
    """By at most the jitter, and not all alike; without one they are exact."""
    job = Job("one", await run_db(add), 0, 1)
    spread = Chores()
    spread.jitter = 0.2
    waits = [await run_db(spread.settle, job, FAILED) for _ in range(20)]
    assert all(wait is not None and 48 <= wait <= 72 for wait in waits)
    assert len(set(waits)) > 1
    assert await run_db(Chores().settle, job, FAILED) == 60


async def test_further_columns_and_long_errors(add: Add) -> None:
    key = await run_db(add)
    work = Chores()
    await run_db(work.settle, await _claim(work), Result("x" * 10_000, values={"title": "further"}))
    row = await _row(key)
    assert (len(row.last_error), row.title) == (MAX_ERROR, "further")
    with time_machine.travel(timezone.now() + timedelta(seconds=10)):
        await run_db(work.settle, await _claim(work), Result(values={"title": "again"}))
    row = await _row(key)
    assert (row.last_error, row.title) == ("", "again")


async def test_a_queue_that_hangs_holds_up_no_other(add: Add) -> None:
    for queue in ("slow", "quick"):
        await run_db(add, queue)
    hanging = Hanging("slow")
    work = Chores(hanging)
    serving = asyncio.create_task(work.serve("slow"))
    await hanging.begun.acquire()
    await work.serve("quick")
    assert not serving.done()
    assert await NotificationDelivery.objects.filter(channel="quick", state="delivered").aexists()
    hanging.over.set()
    await serving


async def test_no_more_run_at_a_time_than_may(add: Add) -> None:
    """What waits for a place has had no try, and its lease does not run."""
    names = [f"slow {number}" for number in range(Chores.max_running)]
    for queue in (*names, "late"):
        await run_db(add, queue)
    hanging = Hanging(*names, "late")
    work = Chores(hanging)
    serving = [asyncio.create_task(work.serve(queue)) for queue in (*names, "late")]
    for _ in names:
        await hanging.begun.acquire()
    assert sorted(hanging.queues) == names
    assert await run_db(work.due) == ["late"]
    waiting = await NotificationDelivery.objects.aget(channel="late")
    assert (waiting.attempt, waiting.lease_expires_at) == (0, None)
    hanging.over.set()
    await asyncio.gather(*serving)
    assert hanging.queues[-1] == "late"
    assert await NotificationDelivery.objects.filter(state="delivered").acount() == 4


async def test_a_retry_that_is_due_soon_is_made_by_the_same_process(add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a message and without the sweep."""
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(leased_work, "get_loop", lambda: loop)
    key = await run_db(add)
    arrived = asyncio.Event()

    async def todo(job: Job[str]) -> Result:
        if job.attempt < 3:
            return FAILED
        arrived.set()
        return Result()

    work = Chores(todo)
    work.backoff = (0.01, 0.01)
    await work.serve("one")
    await asyncio.wait_for(arrived.wait(), 10)
    await work.serve("one")
    # The one that was at work does it, and no second one began.
    assert work.done == ["job"] * 3
    row = await _row(key)
    while row.state == "pending":
        row = await _row(key)
    assert (row.state, row.attempt, row.retries) == ("delivered", 3, 2)


@pytest.mark.parametrize(("wait", "soon"), [(SOON_SECONDS, True), (SOON_SECONDS + 0.1, False)])
async def test_a_later_retry_is_left_to_the_sweep(
    add: Add, monkeypatch: pytest.MonkeyPatch, wait: float, soon: bool
) -> None:
    later: list[float] = []
    monkeypatch.setattr(
        asyncio.get_running_loop(), "call_later", lambda seconds, *_args, **_given: later.append(seconds)
    )
    await run_db(add)

    async def todo(job: Job[str]) -> Result:
        return FAILED

    work = Chores(todo)
    work.backoff = (wait,)
    await work.serve("one")
    assert later == ([wait] if soon else [])


async def test_a_job_that_breaks_does_not_end_its_queue_for_ever(add: Add, caplog: pytest.LogCaptureFixture) -> None:
    """An error that nobody foresaw is logged, and counts like any other: tried again, and given up at last."""
    key = await run_db(add)
    await run_db(add, "two")

    async def todo(job: Job[str]) -> Result:
        if job.attempt == 1 and job.queue == "one":
            raise RuntimeError("a bug")
        return Result()

    class OneAtATime(Chores):
        max_running = 1

    work = OneAtATime(todo)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        await work.serve("one")
        assert "tests.chores of one broke" in caplog.text
        assert "a bug" in caplog.text
        assert (await _row(key)).last_error == "Unexpected: RuntimeError"
        await work.serve("two")  # its place is free again
        clock.shift(work.backoff[0] + 1)
        await work.serve("one")
    assert work.done == ["job"] * 3
    row = await _row(key)
    assert (row.state, row.attempt, row.retries) == ("delivered", 2, 1)


async def test_a_queue_that_is_empty_or_gone_breaks_nothing(add: Add, caplog: pytest.LogCaptureFixture) -> None:
    work = Chores()
    await work.serve("no such queue")
    key = await run_db(add)
    job = await _claim(work)
    await NotificationDelivery.objects.filter(pk=key).adelete()
    for result in (Result(), FAILED, Result("refused", permanent=True)):
        assert await run_db(work.settle, job, result) is None
    assert work.given_up == []
    assert "broke off" not in caplog.text


def test_a_forgotten_queue_is_swept(add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    """One message for each queue, by the task's name; what is not due yet, or in hands, is left."""
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(leased_work, "publish", lambda *message: sent.append(message))
    work = Chores()
    for queue in ("one", "one", "two", "three", "four"):
        add(queue)
    NotificationDelivery.objects.filter(channel="three").update(next_try_at=timezone.now() + timedelta(minutes=1))
    assert work.claim("four") is not None
    assert work.sweep() == 2
    assert sent == [("tests.chores", "one"), ("tests.chores", "two")]


def test_a_worker_needs_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its own loop serve the queue; another process sends the queue's name, taken apart if it has parts."""
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(leased_work, "publish", lambda *message: sent.append(message))
    monkeypatch.setattr(leased_work, "_in_worker", False)
    work: Any = Chores()
    monkeypatch.setattr(work, "serve_here", work.served.append)
    work.enqueue("one")
    work.enqueue((7, "channel"))
    assert (sent, work.served) == ([("tests.chores", "one"), ("tests.chores", 7, "channel")], [])
    leased_work.note_worker()
    work.enqueue("two")
    assert (len(sent), work.served) == (2, ["two"])

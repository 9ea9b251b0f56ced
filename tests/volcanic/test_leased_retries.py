"""Retries of leased work: the waits between tries, giving up, and unexpected errors."""

import asyncio
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from tests.volcanic.chores import FAILED, AddJob, Chores, claimed, row_of
from volcanic import leased_work
from volcanic.aio.db import run_db
from volcanic.leased_work import MAX_ERROR, SOON_SECONDS, Job, Result, retry_now
from volcanic.models import NotificationDelivery


async def test_retries_and_then_it_is_given_up(add_job: AddJob) -> None:
    """After each wait of the table, not a moment before; the jobs behind it wait, and go on when it is given up."""
    key = await run_db(add_job)
    await run_db(add_job, "one", "behind")

    async def todo(job: Job[str]) -> Result:
        return FAILED if job.pk == key else Result()

    work = Chores(todo)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        for number, wait in enumerate(work.backoff, 1):
            await work.serve("one")
            row = await row_of(key)
            assert (row.state, row.attempt, row.retries, row.last_error) == ("pending", number, number, "refused")
            assert row.next_try_at == timezone.now() + timedelta(seconds=wait)
            assert row.lease_expires_at is None
            clock.shift(wait - 0.001)
            assert await run_db(work.due) == []
            assert await run_db(work.claim, "one") is None
            clock.shift(0.001)
            assert await run_db(work.due) == ["one"]
        await work.serve("one")
        row = await row_of(key)
        assert (row.state, row.attempt, row.retries, row.last_error) == ("failed", 4, 4, "refused")
        assert work.given_up == [(key, "refused")]
        await work.serve("one")
    assert work.done == ["job"] * 4 + ["behind"]


async def test_what_can_not_succeed_is_given_up_at_once(add_job: AddJob) -> None:
    key = await run_db(add_job)
    work = Chores()
    assert await run_db(work.settle, await claimed(work), Result("no such host", permanent=True)) is None
    row = await row_of(key)
    assert (row.state, row.retries, work.given_up) == ("failed", 1, [(key, "no such host")])


async def test_giving_up_and_its_last_failure_are_written_together(add_job: AddJob) -> None:
    """Where telling of it fails, nothing is noted either: when the lease has passed, it is done again."""
    key = await run_db(add_job)

    class Speechless(Chores):
        def give_up(self, job: Job[str], error: str) -> None:
            raise RuntimeError("nobody can be told")

    work = Speechless()
    with pytest.raises(RuntimeError, match="nobody"):
        await run_db(work.settle, await claimed(work), Result("refused", permanent=True))
    row = await row_of(key)
    assert (row.state, row.retries, row.last_error) == ("pending", 0, "")
    assert row.lease_expires_at is not None


async def test_begun_anew_it_has_all_its_tries_again(add_job: AddJob) -> None:
    key = await run_db(add_job)
    work = Chores()
    await NotificationDelivery.objects.filter(pk=key).aupdate(retries=3)
    anew = retry_now()
    await NotificationDelivery.objects.filter(pk=key).aupdate(retries=anew["retries"], next_try_at=anew["next_try_at"])
    assert await run_db(work.settle, await claimed(work), FAILED) == 10
    assert work.given_up == []


async def test_the_waits_are_spread(add_job: AddJob) -> None:
    """By at most the jitter, and not all alike; without one they are exact."""
    job = Job("one", await run_db(add_job), 0, 1)
    spread = Chores()
    spread.jitter = 0.2
    waits = [await run_db(spread.settle, job, FAILED) for _ in range(20)]
    assert all(wait is not None and 48 <= wait <= 72 for wait in waits)
    assert len(set(waits)) > 1
    assert await run_db(Chores().settle, job, FAILED) == 60


async def test_further_columns_and_long_errors(add_job: AddJob) -> None:
    key = await run_db(add_job)
    work = Chores()
    await run_db(work.settle, await claimed(work), Result("x" * 10_000, values={"title": "further"}))
    row = await row_of(key)
    assert (len(row.last_error), row.title) == (MAX_ERROR, "further")
    with time_machine.travel(timezone.now() + timedelta(seconds=10)):
        await run_db(work.settle, await claimed(work), Result(values={"title": "again"}))
    row = await row_of(key)
    assert (row.last_error, row.title) == ("", "again")


async def test_a_retry_that_is_due_soon_is_made_by_the_same_process(
    add_job: AddJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a message and without the sweep."""
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(leased_work, "get_loop", lambda: loop)
    key = await run_db(add_job)
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
    row = await row_of(key)
    while row.state == "pending":
        row = await row_of(key)
    assert (row.state, row.attempt, row.retries) == ("delivered", 3, 2)


@pytest.mark.parametrize(("wait", "soon"), [(SOON_SECONDS, True), (SOON_SECONDS + 0.1, False)])
async def test_a_later_retry_is_left_to_the_sweep(
    add_job: AddJob, monkeypatch: pytest.MonkeyPatch, wait: float, soon: bool
) -> None:
    later: list[float] = []
    monkeypatch.setattr(
        asyncio.get_running_loop(), "call_later", lambda seconds, *_args, **_given: later.append(seconds)
    )
    await run_db(add_job)

    async def todo(job: Job[str]) -> Result:
        return FAILED

    work = Chores(todo)
    work.backoff = (wait,)
    await work.serve("one")
    assert later == ([wait] if soon else [])


async def test_a_job_that_breaks_does_not_end_its_queue_for_ever(
    add_job: AddJob, caplog: pytest.LogCaptureFixture
) -> None:
    """An error that nobody foresaw is logged, and counts like any other: tried again, and given up at last."""
    key = await run_db(add_job)
    await run_db(add_job, "two")

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
        assert (await row_of(key)).last_error == "Unexpected: RuntimeError"
        await work.serve("two")  # its place is free again
        clock.shift(work.backoff[0] + 1)
        await work.serve("one")
    assert work.done == ["job"] * 3
    row = await row_of(key)
    assert (row.state, row.attempt, row.retries) == ("delivered", 2, 1)

"""Leased work: the order of a queue, one process at a time, leases that pass, the sweep."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from tests.volcanic.chores import FAILED, LEASE, AddJob, Chores, Hanging, claimed, row_of
from volcanic import leased_work
from volcanic.aio.db import run_db
from volcanic.leased_work import Job, Result
from volcanic.models import NotificationDelivery


async def test_the_jobs_of_a_queue_are_done_in_their_order(add_job: AddJob) -> None:
    keys = [await run_db(add_job, "one", str(number)) for number in range(3)]
    other = await run_db(add_job, "two", "other")
    work = Chores()
    await work.serve("one")
    assert work.done == ["0", "1", "2"]
    for key in keys:
        row = await row_of(key)
        assert (row.state, row.attempt, row.retries, row.last_error) == ("delivered", 1, 0, "")
        assert row.delivered_at is not None
        assert row.lease_expires_at is None
    assert (await row_of(other)).state == "pending"


async def test_one_process_at_a_time(add_job: AddJob) -> None:
    """While one is at work, another finds the job leased and leaves: nothing is done twice."""
    for text in ("first", "second"):
        await run_db(add_job, "one", text)
    hanging = Hanging("one")
    work, other = Chores(hanging), Chores()
    serving = asyncio.create_task(work.serve("one"))
    await hanging.begun.acquire()
    await other.serve("one")
    assert other.done == await run_db(other.due) == []
    hanging.over.set()
    await serving
    assert work.done == ["first", "second"]


async def test_of_many_that_race_one_gets_the_job(add_job: AddJob) -> None:
    await run_db(add_job)
    claims = await asyncio.gather(*[run_db(Chores().claim, "one") for _ in range(8)])
    assert len([claim for claim in claims if claim]) == 1


async def test_a_message_that_comes_twice_has_a_job_done_once(add_job: AddJob) -> None:
    await run_db(add_job)
    work = Chores()
    await asyncio.gather(*[work.serve("one") for _ in range(8)])
    assert work.done == ["job"]


async def test_what_comes_while_a_queue_is_served_is_done_too(add_job: AddJob) -> None:
    """Its message found the queue busy, and it is not left to the sweep: not even behind a job that failed."""
    results = {"first": Result(), "second": Result("refused", permanent=True), "third": Result()}

    async def todo(job: Job[str]) -> Result:
        text = (await row_of(job.pk)).text
        if text == "second":
            await run_db(add_job, "one", "third")
            await work.serve("one")
        return results[text]

    work = Chores(todo)
    for text in ("first", "second"):
        await run_db(add_job, "one", text)
    await work.serve("one")
    assert work.done == ["first", "second", "third"]


async def test_what_a_dead_process_left_is_found_when_its_lease_has_passed(add_job: AddJob) -> None:
    key = await run_db(add_job)
    work = Chores()
    with time_machine.travel(timezone.now(), tick=False) as clock:
        await claimed(Chores())  # and that process is gone
        await work.serve("one")
        assert work.done == await run_db(work.due) == []
        clock.shift(LEASE + 1)
        assert await run_db(work.due) == ["one"]
        await work.serve("one")
    row = await row_of(key)
    assert (row.state, row.attempt, row.retries) == ("delivered", 2, 0)


@pytest.mark.parametrize("result", [Result(), FAILED, Result("refused", permanent=True)])
async def test_a_try_that_ends_too_late_writes_nothing(add_job: AddJob, result: Result) -> None:
    """Neither an end nor a failure, while the process that came after it is at work and when that is done."""
    key = await run_db(add_job)
    work = Chores()
    with time_machine.travel(timezone.now(), tick=False) as clock:
        late = await claimed(work)
        clock.shift(LEASE + 1)
        again = await claimed(work)
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


async def test_a_queue_that_hangs_holds_up_no_other(add_job: AddJob) -> None:
    for queue in ("slow", "quick"):
        await run_db(add_job, queue)
    hanging = Hanging("slow")
    work = Chores(hanging)
    serving = asyncio.create_task(work.serve("slow"))
    await hanging.begun.acquire()
    await work.serve("quick")
    assert not serving.done()
    assert await NotificationDelivery.objects.filter(channel="quick", state="delivered").aexists()
    hanging.over.set()
    await serving


async def test_no_more_run_at_a_time_than_may(add_job: AddJob) -> None:
    """What waits for a place has had no try, and its lease does not run."""
    names = [f"slow {number}" for number in range(Chores.max_running)]
    for queue in (*names, "late"):
        await run_db(add_job, queue)
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


async def test_a_queue_that_is_empty_or_gone_breaks_nothing(add_job: AddJob, caplog: pytest.LogCaptureFixture) -> None:
    work = Chores()
    await work.serve("no such queue")
    key = await run_db(add_job)
    job = await claimed(work)
    await NotificationDelivery.objects.filter(pk=key).adelete()
    for result in (Result(), FAILED, Result("refused", permanent=True)):
        assert await run_db(work.settle, job, result) is None
    assert work.given_up == []
    assert "broke off" not in caplog.text


def test_a_forgotten_queue_is_swept(add_job: AddJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """One message for each queue, by the task's name; what is not due yet, or in hands, is left."""
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(leased_work, "publish", lambda *message: sent.append(message))
    work = Chores()
    for queue in ("one", "one", "two", "three", "four"):
        add_job(queue)
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

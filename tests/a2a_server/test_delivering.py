"""Webhooks as leased work: in what order, how often, and who is told when one is given up.

What holds of all leased work is in test_leased_work.py, and what is sent over HTTP in test_webhooks.py.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from a2a_server.models import PushConfig, PushDelivery, Task, TaskEvent
from a2a_server.push.configs import push_config_deliver_now
from a2a_server.push.deliveries import TIMEOUT_SECONDS, PushDeliveries
from a2a_server.tasks import deliver
from tests.conftest import Keyed
from volcanic import outbound
from volcanic.aio.db import run_db
from volcanic.models import Notification, Session

Play = Callable[[Any], None]
REFUSED = outbound.OutboundError("hooks.example refused the connection", False)
INSIDE = outbound.OutboundError("hooks.example leads to an address that is not public", True)


@pytest.fixture
def config(transactional_db: None, friend: Keyed) -> PushConfig:
    """A webhook of a completed task that is owed two notifications."""
    session = Session.objects.create(workspace=friend.caller.workspace, kind="inbound", scope="s")
    task = Task.objects.create(caller=friend.caller, session=session, context_id="c", state="completed", seq=2)
    config = PushConfig.objects.create(task=task, config_id="c", url="https://hooks.example/x", token="t0ken")
    for seq, state in enumerate(("SUBMITTED", "COMPLETED"), 1):
        _owe(config, seq, state)
    return config


def _owe(config: PushConfig, seq: int, state: str) -> None:
    payload = {"statusUpdate": {"status": {"state": f"TASK_STATE_{state}"}}}
    TaskEvent.objects.create(task_id=config.task_id, seq=seq, payload=payload)
    PushDelivery.objects.create(config=config, seq=seq)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> PushDeliveries:
    """The deliveries of one process. It makes no retry by itself: time stands still in these tests."""
    work = PushDeliveries()
    monkeypatch.setattr(work, "serve_here", lambda _queue: None)
    return work


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The messages that were sent. Nothing is really sent."""
    messages: list[tuple[Any, ...]] = []
    for module in ("volcanic.leased_work", "a2a_server.push.configs"):
        monkeypatch.setattr(f"{module}.publish", lambda *message: messages.append(message))
    return messages


@pytest.fixture
def tries() -> list[bytes]:
    """What is sent, in order."""
    return []


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch, tries: list[bytes]) -> Play:
    """Sets what the webhook does: a status, or an OutboundError to raise."""

    def play(answer: int | outbound.OutboundError) -> None:
        async def request(method: str, url: str, **arguments: Any) -> outbound.Response:
            tries.append(arguments["content"])
            if isinstance(answer, Exception):
                raise answer
            return outbound.Response(answer, {}, b"")

        monkeypatch.setattr(outbound, "request", request)

    return play


async def _first(config: PushConfig) -> PushDelivery:
    return await PushDelivery.objects.aget(config=config, seq=1)


async def _state(config: PushConfig) -> str:
    return (await PushConfig.objects.aget(pk=config.pk)).state


async def _pending() -> int:
    return await PushDelivery.objects.filter(state="pending").acount()


async def test_all_that_is_owed_is_delivered_in_order(
    config: PushConfig, work: PushDeliveries, webhook: Play, tries: list[bytes]
) -> None:
    webhook(204)
    await work.serve(config.pk)
    assert [b"SUBMITTED" in body for body in tries] == [True, False]
    assert (await _pending(), await _state(config)) == (0, "active")
    assert (await _first(config)).last_status == 204


async def test_a_later_event_waits_for_an_earlier_one(
    config: PushConfig, work: PushDeliveries, webhook: Play, tries: list[bytes]
) -> None:
    """Though it is due itself: order counts more."""
    webhook(503)
    await work.serve(config.pk)
    first = await _first(config)
    assert (first.last_status, first.last_error, first.retries) == (503, "answered 503", 1)
    assert await run_db(work.due) == []
    assert await run_db(work.claim, config.pk) is None
    webhook(200)
    with time_machine.travel(first.next_try_at):
        assert await run_db(work.due) == [config.pk]
        await work.serve(config.pk)
    assert [b"SUBMITTED" in body for body in tries] == [True, True, False]


async def test_no_other_process_goes_past_the_one_that_is_under_way(config: PushConfig, work: PushDeliveries) -> None:
    assert await run_db(work.claim, config.pk)
    assert await run_db(PushDeliveries().claim, config.pk) is None
    assert await run_db(work.due) == []
    assert work.lease_seconds > TIMEOUT_SECONDS


async def test_retries_and_then_the_owner_is_told(
    config: PushConfig, work: PushDeliveries, webhook: Play, tries: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """After 1, 5, 30 s, 2, 10, 30 min; then failing, with a notification, and nothing lost."""
    webhook(REFUSED)
    now = timezone.now()
    for seconds in (1, 5, 30, 120, 600, 1800):
        with time_machine.travel(now, tick=False):
            await work.serve(config.pk)
        delivery = await _first(config)
        assert seconds * 0.8 <= (delivery.next_try_at - now).total_seconds() <= seconds * 1.2
        assert (await _state(config), delivery.last_status) == ("active", None)
        now = delivery.next_try_at + timedelta(milliseconds=1)
    with time_machine.travel(now, tick=False):
        await work.serve(config.pk)
        assert await run_db(work.due) == []
        await work.serve(config.pk)
    assert len(tries) == 7
    assert (await _state(config), await _pending()) == ("failing", 2)
    assert (await _first(config)).last_error == "hooks.example refused the connection"
    notification = await Notification.objects.aget()
    assert notification.text == (
        "A webhook of friend was given up after 7 tries: hooks.example refused the connection."
    )
    assert (notification.caller, notification.session_id) == ("friend", (await _task(config)).session_id)
    assert "t0ken" not in caplog.text


async def _task(config: PushConfig) -> Task:
    return await Task.objects.aget(pk=config.task_id)


async def test_an_address_that_may_not_be_called_is_given_up_at_once(
    config: PushConfig, work: PushDeliveries, webhook: Play
) -> None:
    """A name that now leads inside. Trying again would not help."""
    webhook(INSIDE)
    await work.serve(config.pk)
    assert await _state(config) == "failing"
    assert await Notification.objects.acount() == 1


async def test_a_webhook_that_was_stopped_meanwhile_is_told_of_to_nobody(
    config: PushConfig, work: PushDeliveries, webhook: Play
) -> None:
    webhook(INSIDE)
    job = await run_db(work.claim, config.pk)
    assert job is not None
    await PushConfig.objects.filter(pk=config.pk).aupdate(state="stopped")
    await run_db(work.settle, job, await work.do(job))
    assert await _state(config) == "stopped"
    assert not await Notification.objects.aexists()


async def test_a_failing_webhook_begins_anew_when_the_owner_wants_it(
    config: PushConfig, work: PushDeliveries, webhook: Play, tries: list[bytes], published: list[tuple[Any, ...]]
) -> None:
    """With what it is owed from then on, too, and in order."""
    webhook(INSIDE)
    await work.serve(config.pk)
    await run_db(_owe, config, 3, "FAILED")
    webhook(200)
    await work.serve(config.pk)
    assert len(tries) == 1
    assert await run_db(lambda: push_config_deliver_now(config=config))
    assert published == [("a2a_server.tasks.deliver", config.pk)]
    await work.serve(config.pk)
    assert (len(tries), await _pending(), await _state(config)) == (4, 0, "active")


@pytest.mark.parametrize("state", ["stopped", "failing"])
async def test_a_webhook_that_is_not_active_gets_nothing(
    config: PushConfig, work: PushDeliveries, webhook: Play, tries: list[bytes], state: str
) -> None:
    webhook(200)
    await PushConfig.objects.filter(pk=config.pk).aupdate(state=state)
    await work.serve(config.pk)
    assert await run_db(work.due) == []
    assert tries == []


async def test_a_webhook_that_is_gone_is_deleted_with_what_it_is_owed(
    config: PushConfig, work: PushDeliveries, webhook: Play, tries: list[bytes]
) -> None:
    webhook(410)
    await work.serve(config.pk)
    assert len(tries) == 1
    assert not await PushConfig.objects.aexists()
    assert not await PushDelivery.objects.aexists()


async def test_a_task_or_webhook_that_is_gone_breaks_nothing(
    config: PushConfig, work: PushDeliveries, webhook: Play, tries: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    webhook(200)
    job = await run_db(work.claim, config.pk)
    assert job is not None
    await Task.objects.filter(pk=config.task_id).adelete()
    await run_db(work.settle, job, await work.do(job))
    await work.serve(config.pk)
    await work.serve(999_999)
    assert tries == []
    assert "broke off" not in caplog.text


def test_a_lost_message_is_made_good(
    config: PushConfig, work: PushDeliveries, published: list[tuple[Any, ...]]
) -> None:
    """The sweep, which runs every two seconds, sends it again; what is not due yet it leaves."""
    assert work.sweep() == 1
    assert published == [("a2a_server.tasks.deliver", config.pk)]
    PushDelivery.objects.filter(seq=1).update(next_try_at=timezone.now() + timedelta(minutes=1))
    assert work.sweep() == 0  # the second is due, but waits for the first


def test_messages_reach_the_entry_point_by_its_name() -> None:
    assert PushDeliveries.task == deliver.name

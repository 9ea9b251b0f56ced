"""Who delivers, when it is tried again, and when it is given up. What is sent over HTTP is in test_webhooks.py."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from asgiref.sync import sync_to_async
from django.utils import timezone
from pytest_django.fixtures import Settings

from a2a_server import delivering
from a2a_server.delivering import RETRY_SECONDS, configs_due, deliver, pushes_sweep
from a2a_server.models import PushConfig, PushDelivery, Task, TaskEvent
from tests.conftest import Keyed
from tests.receiver import Receiver
from tests.waiting import PATIENCE, wait_for
from volcanic import outbound
from volcanic.models import Notification, Session

Answer = Callable[[int], int]


@pytest.fixture
def config(transactional_db: None, friend: Keyed) -> PushConfig:
    """A webhook of a completed task that is owed two notifications."""
    session = Session.objects.create(workspace=friend.caller.workspace, kind="inbound", scope="s")
    task = Task.objects.create(caller=friend.caller, session=session, context_id="c", state="completed", seq=2)
    for seq, state in enumerate(("SUBMITTED", "COMPLETED"), 1):
        payload = {"statusUpdate": {"status": {"state": f"TASK_STATE_{state}"}}}
        TaskEvent.objects.create(task=task, seq=seq, payload=payload)
    config = PushConfig.objects.create(task=task, config_id="c", url="https://hooks.example/x", token="t0ken")
    for seq in (1, 2):
        PushDelivery.objects.create(config=config, seq=seq)
    return config


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is sent, in order. `answers` of the fixture below decides what comes back."""
    sent: list[Any] = []
    return sent


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch, tries: list[Any]) -> Callable[[Any], None]:
    """Sets what the webhook does: a status, an OutboundError to raise, or a coroutine function to await."""

    def play(answer: Any) -> None:
        async def request(method: str, url: str, **arguments: Any) -> outbound.Response:
            tries.append(arguments["content"])
            if isinstance(answer, Exception):
                raise answer
            status = answer if isinstance(answer, int) else await answer(len(tries))
            return outbound.Response(status, {}, b"")

        monkeypatch.setattr(outbound, "request", request)

    return play


def _pending() -> int:
    return PushDelivery.objects.filter(state="pending").count()


async def test_all_that_is_owed_is_delivered_in_order(config: PushConfig, webhook: Any, tries: list[bytes]) -> None:
    webhook(204)
    await deliver(config.pk)
    assert [b"SUBMITTED" in body for body in tries] == [True, False]
    assert await sync_to_async(_pending)() == 0
    row = await PushConfig.objects.aget(pk=config.pk)
    assert (row.holder, row.lease_expires_at, row.state) == ("", None, "active")


async def test_one_process_at_a_time(config: PushConfig, webhook: Any, tries: list[bytes]) -> None:
    """While one delivers, another finds the config held and leaves: nothing is sent twice."""
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_number: int) -> int:
        entered.set()
        await go_on.wait()
        return 200

    webhook(slow)
    first = asyncio.create_task(deliver(config.pk))
    await entered.wait()
    delivering._busy.clear()  # as in another process, which knows nothing of the first
    await deliver(config.pk)
    assert len(tries) == 1
    assert await sync_to_async(configs_due)() == []
    go_on.set()
    await first
    assert len(tries) == 2


async def test_webhooks_that_hang_hold_no_other_up(
    config: PushConfig, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """Not another one of the same task either."""
    settings.ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]
    monkeypatch.setattr(delivering, "TIMEOUT_SECONDS", 10 * PATIENCE)
    with Receiver(lambda _request, _number: None) as hanging, Receiver() as good:

        async def owed(receiver: Receiver, name: str) -> int:
            made = await PushConfig.objects.acreate(task_id=config.task_id, config_id=name, url=receiver.url)
            await PushDelivery.objects.acreate(config=made, seq=1)
            return made.pk

        waiting = [asyncio.create_task(deliver(await owed(hanging, f"hangs-{number}"))) for number in range(20)]
        await asyncio.to_thread(wait_for, lambda: len(hanging.received) == 20)
        await deliver(await owed(good, "good"))
        assert len(good.accepted) == 1
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_holder_whose_lease_has_passed_is_replaced(
    config: PushConfig, webhook: Any, tries: list[bytes]
) -> None:
    """It died, or was too slow: what it had under way is sent again, and it can't go on itself."""
    webhook(200)
    past = timezone.now() - timedelta(seconds=1)
    await PushConfig.objects.filter(pk=config.pk).aupdate(holder="dead", lease_expires_at=past)
    assert await sync_to_async(configs_due)() == [config.pk]
    await deliver(config.pk)
    assert len(tries) == 2
    assert await sync_to_async(delivering._next)(config.pk, "dead") is None


async def test_retries_and_then_the_owner_is_told(
    config: PushConfig, webhook: Any, tries: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """After 1, 5, 30 s, 2, 10, 30 min; a later event waits; then failing, with a notification, and nothing lost."""
    webhook(outbound.OutboundError("hooks.example refused the connection", False))
    now = timezone.now()
    for seconds in RETRY_SECONDS:
        with time_machine.travel(now, tick=False):
            if seconds <= delivering._WAIT_SECONDS:  # it would wait for the next, and time stands still here
                holder = "test"
                assert await sync_to_async(delivering._claim)(config.pk, holder)
                due = await sync_to_async(delivering._next)(config.pk, holder)
                assert due is not None
                tries.append(b"")
                await sync_to_async(delivering._failed)(config.pk, holder, due, None, "refused", False)
                await sync_to_async(delivering._release)(config.pk, holder)
            else:
                await deliver(config.pk)
            delivery = await PushDelivery.objects.aget(config=config, seq=1)
            wait = (delivery.next_try_at - now).total_seconds()
            assert seconds * 0.8 <= wait <= seconds * 1.2
        now = delivery.next_try_at + timedelta(milliseconds=1)
    with time_machine.travel(now, tick=False):
        await deliver(config.pk)
        assert await sync_to_async(configs_due)() == []
    assert len(tries) == len(RETRY_SECONDS) + 1
    row = await PushConfig.objects.aget(pk=config.pk)
    assert (row.state, row.holder) == ("failing", "")
    assert await sync_to_async(_pending)() == 2
    notification = await Notification.objects.aget()
    assert "friend" in notification.text
    assert "7 tries" in notification.text
    assert "t0ken" not in caplog.text


async def test_an_address_that_may_not_be_called_is_given_up_at_once(config: PushConfig, webhook: Any) -> None:
    """A name that now leads inside. Trying again would not help."""
    webhook(outbound.OutboundError("hooks.example leads to an address that is not public", True))
    await deliver(config.pk)
    assert (await PushConfig.objects.aget(pk=config.pk)).state == "failing"
    assert await Notification.objects.acount() == 1


async def test_what_comes_while_it_delivers_is_delivered_too(
    config: PushConfig, webhook: Any, tries: list[bytes]
) -> None:
    """An event whose message found the config held is not left to the sweep."""

    async def slow(number: int) -> int:
        if number == 2:
            await TaskEvent.objects.acreate(
                task_id=config.task_id, seq=3, payload={"statusUpdate": {"status": {"state": "TASK_STATE_FAILED"}}}
            )
            await PushDelivery.objects.acreate(config=config, seq=3)
            await deliver(config.pk)  # the message of that event: at once, while the first is at work
        return 200

    webhook(slow)
    await deliver(config.pk)
    assert len(tries) == 3


async def test_a_stopped_webhook_gets_nothing(config: PushConfig, webhook: Any, tries: list[bytes]) -> None:
    webhook(200)
    await PushConfig.objects.filter(pk=config.pk).aupdate(state="stopped")
    await deliver(config.pk)
    assert tries == []


async def test_a_task_or_webhook_that_is_gone_breaks_nothing(config: PushConfig, webhook: Any) -> None:
    webhook(200)
    await Task.objects.filter(pk=config.task_id).adelete()
    await deliver(config.pk)
    await deliver(999_999)
    assert await PushDelivery.objects.acount() == 0


def test_a_lost_message_is_made_good(config: PushConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep, which runs every two seconds, sends it again; what is not due yet it leaves."""
    sent: list[int] = []
    monkeypatch.setattr(delivering, "push_enqueue", sent.append)
    assert pushes_sweep() == 1
    assert sent == [config.pk]
    PushDelivery.objects.filter(seq=1).update(next_try_at=timezone.now() + timedelta(minutes=1))
    assert pushes_sweep() == 0  # the second is due, but waits for the first

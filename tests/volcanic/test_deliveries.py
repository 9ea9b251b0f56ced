"""Texts on their way to channels: who sends them, when it is tried again, and that none waits for another."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from tests.product import Product, free_port
from tests.receiver import Receiver
from tests.volcanic.channel_servers import MailServer
from tests.waiting import wait_for
from volcanic import deliveries
from volcanic.db import run_db
from volcanic.deliveries import LEASE_SECONDS, RETRY_SECONDS, deliver, deliveries_sweep, delivery_retry
from volcanic.models import NotificationDelivery, Turn, Workspace
from volcanic.services import notification_create, workspace_set_channels
from volcanic.tasks import tell

Make = Callable[[str], NotificationDelivery]


@pytest.fixture
def make(transactional_db: None, workspace: Workspace) -> Make:
    """Makes a delivery to an address."""

    def make(url: str) -> NotificationDelivery:
        return NotificationDelivery.objects.create(
            workspace=workspace, channel="shown", url=url, title="title", text="text"
        )

    return make


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The deliveries for which a message was sent. Nothing is really sent."""
    ids: list[int] = []
    monkeypatch.setattr(deliveries, "publish", lambda _task, delivery_id: ids.append(delivery_id))
    return ids


def _json(receiver: Receiver, options: str = "") -> str:
    return f"{receiver.url.replace('http', 'json', 1)}/hooks/SECRET-PATH{options}"


async def _row(delivery: NotificationDelivery) -> NotificationDelivery:
    return await NotificationDelivery.objects.aget(pk=delivery.pk)


async def test_mail_and_http_arrive(make: Make) -> None:
    with MailServer() as mail, Receiver() as receiver:
        rows = [await run_db(make, url) for url in (mail.url, _json(receiver))]
        for row in rows:
            await deliver(row.pk)
            await deliver(row.pk)  # a message that came twice
    assert [message["Subject"] for message in mail.received] == ["title"]
    assert [request.json["message"] for request in receiver.received] == ["text"]
    for row in rows:
        row = await _row(row)
        assert (row.state, row.attempts, row.last_error) == ("delivered", 1, "")
        assert row.delivered_at is not None


async def test_two_at_once_send_once(make: Make) -> None:
    with Receiver() as receiver:
        row = await run_db(make, _json(receiver))
        await asyncio.gather(*[deliver(row.pk) for _ in range(8)])
    assert len(receiver.received) == 1


async def test_a_channel_that_is_down_is_tried_again(make: Make) -> None:
    port = free_port()
    row = await run_db(make, f"json://127.0.0.1:{port}/hooks/SECRET-PATH")
    with time_machine.travel(timezone.now(), tick=False) as clock:
        await deliver(row.pk)
        after = await _row(row)
        assert (after.state, after.attempts) == ("pending", 1)
        assert after.next_try_at == timezone.now() + timedelta(seconds=10)
        assert after.last_error == "A Connection error occurred sending JSON notification to 127.0.0.1."
        await deliver(row.pk)  # too early
        assert (await _row(row)).attempts == 1
        clock.shift(10)
        await deliver(row.pk)
        after = await _row(row)
        assert (after.attempts, after.next_try_at) == (2, timezone.now() + timedelta(seconds=60))


async def test_a_day_later_it_is_given_up(make: Make, published: list[int], caplog: pytest.LogCaptureFixture) -> None:
    assert 23 * 3600 < sum(RETRY_SECONDS) <= 24 * 3600
    row = await run_db(make, f"json://o:secret-word@127.0.0.1:{free_port()}/hooks/SECRET-PATH")
    await NotificationDelivery.objects.filter(pk=row.pk).aupdate(attempts=len(RETRY_SECONDS) - 1)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        await deliver(row.pk)
        assert (await _row(row)).state == "pending"
        clock.shift(3600)
        await deliver(row.pk)
    after = await _row(row)
    assert (after.state, after.attempts) == ("failed", len(RETRY_SECONDS) + 1)
    assert "Connection error" in after.last_error
    assert f"delivery {row.pk} is given up" in caplog.text
    assert "secret-word" not in caplog.text + after.last_error
    assert "SECRET-PATH" not in caplog.text + after.last_error
    # The owner has it tried again: as if for the first time.
    assert await run_db(delivery_retry, after)
    after = await _row(row)
    assert (after.state, after.attempts, published) == ("pending", 0, [row.pk])


async def test_what_arrived_is_not_sent_again(make: Make, published: list[int]) -> None:
    row = await run_db(make, "json://192.0.2.1")
    await NotificationDelivery.objects.filter(pk=row.pk).aupdate(state="delivered")
    assert not await run_db(delivery_retry, row)
    assert published == []


async def test_a_channel_that_hangs_holds_up_no_other(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "TIMEOUT_SECONDS", 1.0)
    loop = asyncio.get_running_loop()
    with Receiver(lambda _request, _number: None) as mute, Receiver() as receiver:
        hanging = [await run_db(make, _json(mute, "?rto=60")) for _ in range(20)]
        quick = await run_db(make, _json(receiver))
        began = loop.time()
        tries = [asyncio.ensure_future(deliver(row.pk)) for row in hanging]
        await deliver(quick.pk)
        assert loop.time() - began < 1.0
        assert len(receiver.received) == 1
        await asyncio.gather(*tries)
    for row in hanging:
        after = await _row(row)
        assert (after.state, after.last_error) == ("pending", "No answer within 1 seconds.")


async def test_what_a_dead_process_left_is_found(make: Make, published: list[int]) -> None:
    with time_machine.travel(timezone.now(), tick=False) as clock, Receiver() as receiver:
        row = await run_db(make, _json(receiver))
        assert await run_db(deliveries._claim, row.pk)  # and it is gone
        assert await run_db(deliveries_sweep) == 0
        clock.shift(LEASE_SECONDS)
        assert await run_db(deliveries_sweep) == 1
        assert published == [row.pk]
        await deliver(row.pk)
    assert ((await _row(row)).state, (await _row(row)).attempts) == ("delivered", 2)


async def test_a_try_that_ends_too_late_decides_nothing(make: Make) -> None:
    with time_machine.travel(timezone.now(), tick=False) as clock:
        row = await run_db(make, "json://192.0.2.1")
        late = await run_db(deliveries._claim, row.pk)
        clock.shift(LEASE_SECONDS)
        again = await run_db(deliveries._claim, row.pk)
        assert late is not None
        assert again is not None
        await run_db(deliveries._note, late, "slow")
        assert (await _row(row)).last_error == ""
        await run_db(deliveries._note, again, "")
        assert (await _row(row)).state == "delivered"


async def test_what_is_gone_is_no_error(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    await deliver(0)
    row = await run_db(make, "what-was-an-address://once")
    await deliver(row.pk)
    assert (await _row(row)).last_error == "The address is none that can be used here."
    assert "broke off" not in caplog.text


def test_the_running_product_sends(transactional_db: None, product: Product, workspace: Workspace) -> None:
    """From a notification to mail and HTTP, through beat's task, Celery's messages and the worker's loop; a channel
    that is down is no hindrance."""
    product.revive()
    with MailServer() as mail, Receiver() as receiver:
        channels = [f"json://127.0.0.1:{free_port()}/SECRET-PATH", mail.url, _json(receiver)]
        workspace_set_channels(workspace=workspace, text="\n".join(channels))
        notification_create(workspace_id=workspace.pk, session_id=None, text="Hello.", caller="bot")
        tell.delay()
        wait_for(lambda: mail.received and receiver.received, 30)
        down = NotificationDelivery.objects.exclude(last_error="")
        wait_for(down.exists)
        wait_for(lambda: NotificationDelivery.objects.filter(state="delivered").count() == 2)
    assert [request.json["message"] for request in receiver.received] == ["Agent bot reached out: Hello."]
    assert [message.get_content().strip() for message in mail.received] == ["Agent bot reached out: Hello."]
    assert Turn.objects.get().messages == [{"role": "assistant", "text": "Agent bot reached out: Hello."}]
    assert "SECRET-PATH" not in product.log("worker") + product.log("web")

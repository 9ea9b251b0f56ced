"""Notifications as leased work: they arrive, a day is not too long to try, and no channel waits for another.

What holds of all leased work is in test_leased_work.py.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from tests.product import Product
from tests.receiver import Receiver
from tests.volcanic.channel_servers import Dripper, MailServer, closed_port
from tests.waiting import wait_for
from volcanic.aio.db import run_db
from volcanic.leased_work import Result
from volcanic.models import NotificationDelivery, Turn, Workspace
from volcanic.notifications import deliveries
from volcanic.notifications.deliveries import NotificationDeliveries, delivery_retry
from volcanic.notifications.workspace_channels import workspace_set_channels
from volcanic.services import notification_create
from volcanic.tasks import deliver, tell

Make = Callable[..., NotificationDelivery]
Messages = list[tuple[Any, ...]]


@pytest.fixture
def make(transactional_db: None, workspace: Workspace) -> Make:
    """Makes a delivery to an address, on a channel of this workspace or another."""

    def make(
        url: str, *, channel: str = "shown", text: str = "text", of: Workspace = workspace
    ) -> NotificationDelivery:
        return NotificationDelivery.objects.create(workspace=of, channel=channel, url=url, title="title", text=text)

    return make


@pytest.fixture
def work() -> NotificationDeliveries:
    """The deliveries of one process."""
    return NotificationDeliveries()


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> Messages:
    """The messages that were sent. Nothing is really sent."""
    messages: Messages = []
    monkeypatch.setattr("volcanic.leased_work.publish", lambda *message: messages.append(message))
    return messages


def _json(receiver: Receiver) -> str:
    return f"{receiver.url.replace('http', 'json', 1)}/hooks/SECRET-PATH"


def _queue(delivery: NotificationDelivery) -> tuple[int, str]:
    return delivery.workspace_id, delivery.channel


async def _row(delivery: NotificationDelivery) -> NotificationDelivery:
    return await NotificationDelivery.objects.aget(pk=delivery.pk)


async def test_mail_and_http_arrive(make: Make, work: NotificationDeliveries) -> None:
    with MailServer() as mail, Receiver() as receiver:
        rows = [await run_db(make, url, channel=url[:4]) for url in (mail.url, _json(receiver))]
        for row in rows:
            await work.serve(_queue(row))
            await work.serve(_queue(row))  # a message that came twice
    assert [message["Subject"] for message in mail.received] == ["title"]
    assert [request.json["message"] for request in receiver.received] == ["text"]
    for row in rows:
        row = await _row(row)
        assert (row.state, row.attempt, row.retries, row.last_error) == ("delivered", 1, 0, "")
        assert row.delivered_at is not None


async def test_a_channel_that_is_down_is_tried_again(make: Make, work: NotificationDeliveries) -> None:
    with closed_port() as port, time_machine.travel(timezone.now(), tick=False) as clock:
        row = await run_db(make, f"json://127.0.0.1:{port}/hooks/SECRET-PATH")
        for retries, wait in ((1, 10), (2, 60)):
            await work.serve(_queue(row))
            after = await _row(row)
            assert (after.state, after.retries) == ("pending", retries)
            assert after.next_try_at == timezone.now() + timedelta(seconds=wait)
            assert after.last_error == "A Connection error occurred sending JSON notification to 127.0.0.1."
            clock.shift(wait)


async def test_a_day_later_it_is_given_up(
    make: Make, work: NotificationDeliveries, published: Messages, caplog: pytest.LogCaptureFixture
) -> None:
    assert 23 * 3600 < sum(work.backoff) <= 24 * 3600
    most = len(work.backoff)
    with closed_port() as port, time_machine.travel(timezone.now(), tick=False) as clock:
        row = await run_db(make, f"json://o:secret-word@127.0.0.1:{port}/hooks/SECRET-PATH")
        await NotificationDelivery.objects.filter(pk=row.pk).aupdate(retries=most - 1)
        await work.serve(_queue(row))
        assert (await _row(row)).state == "pending"
        clock.shift(3600)
        await work.serve(_queue(row))
    after = await _row(row)
    assert (after.state, after.retries) == ("failed", most + 1)
    assert "Connection error" in after.last_error
    assert f"delivery {row.pk} is given up" in caplog.text
    assert "secret-word" not in caplog.text + after.last_error
    assert "SECRET-PATH" not in caplog.text + after.last_error
    # The owner has it tried again: as if for the first time.
    assert await run_db(delivery_retry, after)
    after = await _row(row)
    assert (after.state, after.retries, published) == ("pending", 0, [("volcanic.tasks.deliver", *_queue(row))])
    with time_machine.travel(after.next_try_at):
        assert await run_db(work.due) == [_queue(row)]


async def test_only_what_was_given_up_is_tried_again(
    make: Make, work: NotificationDeliveries, published: Messages
) -> None:
    arrived = await run_db(make, "json://192.0.2.1", channel="one")
    await NotificationDelivery.objects.filter(pk=arrived.pk).aupdate(state="delivered")
    under_way = await run_db(make, "json://192.0.2.1", channel="two")
    job = await run_db(work.claim, _queue(under_way))
    assert job is not None
    assert not await run_db(delivery_retry, arrived)
    assert not await run_db(delivery_retry, under_way)
    assert published == []
    # Nobody else takes it meanwhile, and how the try ends is written down.
    assert await run_db(work.claim, _queue(under_way)) is None
    await run_db(work.settle, job, Result())
    after = await _row(under_way)
    assert (after.state, after.attempt) == ("delivered", 1)


class Services:
    """Stands in for the processes that send: what goes to an address with "hangs" in it hangs until `over` is set.

    To one with "down" in it nothing can be sent.
    """

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.hanging: list[str] = []
        self.begun = asyncio.Semaphore(0)
        self.delivered: list[str] = []

    async def send(self, url: str, title: str, text: str, *, seconds: float) -> str:
        if "down" in url:
            return "It is down."
        if "hangs" not in url:
            self.delivered.append(text)
            return ""
        self.hanging.append(url)
        self.begun.release()
        await self.over.wait()
        return f"No answer within {seconds:g} seconds."


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    services = Services()
    monkeypatch.setattr(deliveries, "channel_send_apart", services.send)
    return services


async def test_channels_that_hang_hold_up_no_other(
    make: Make, work: NotificationDeliveries, services: Services, workspace: Workspace, other_workspace: Workspace
) -> None:
    """Not another channel of the workspace, and not the same channel of another one. Each holds one place."""
    rows = [
        await run_db(make, f"json://hangs/{number}", channel=f"channel {number}", text=text)
        for number in range(work.max_running - 1)
        for text in ("first", "second")
    ]
    queues = sorted({_queue(row) for row in rows})
    serving = [asyncio.create_task(work.serve(queue)) for queue in queues]
    for _ in queues:
        await services.begun.acquire()
    for own, channel in ((workspace, "urgent"), (other_workspace, "channel 0")):
        quick = await run_db(make, "json://answers", of=own, channel=channel)
        await work.serve(_queue(quick))
        assert (await _row(quick)).state == "delivered"
    assert len(services.hanging) == len(set(services.hanging)) == work.max_running - 1
    services.over.set()
    await asyncio.gather(*serving)
    # What is behind a failure waits for the sweep.
    failed = NotificationDelivery.objects.filter(text="first", last_error="No answer within 30 seconds.", retries=1)
    assert await failed.acount() == work.max_running - 1
    assert await NotificationDelivery.objects.filter(text="second", attempt=0).acount() == work.max_running - 1


async def test_what_waits_for_its_retry_holds_up_nothing(
    make: Make, work: NotificationDeliveries, services: Services
) -> None:
    """Notifications need no order: a later one goes out while an earlier one waits."""
    down = await run_db(make, "json://down", text="first")
    await work.serve(_queue(down))
    assert await run_db(work.due) == []
    later = await run_db(make, "json://answers", text="second")
    assert await run_db(work.due) == [_queue(later)]
    await work.serve(_queue(later))
    assert services.delivered == ["second"]
    assert ((await _row(down)).state, (await _row(later)).state) == ("pending", "delivered")


async def test_a_channel_is_worked_off_in_order(make: Make, work: NotificationDeliveries, services: Services) -> None:
    for number in range(5):
        row = await run_db(make, "json://answers", text=str(number))
    await work.serve(_queue(row))
    assert services.delivered == ["0", "1", "2", "3", "4"]
    assert await NotificationDelivery.objects.filter(state="delivered", attempt=1).acount() == 5


async def test_one_message_for_each_channel(
    make: Make, work: NotificationDeliveries, published: Messages, workspace: Workspace, other_workspace: Workspace
) -> None:
    for own, channel in ((workspace, "b"), (workspace, "a"), (workspace, "b"), (other_workspace, "a")):
        await run_db(make, "json://192.0.2.1", of=own, channel=channel)
    later = await run_db(make, "json://192.0.2.1", channel="later")
    await NotificationDelivery.objects.filter(pk=later.pk).aupdate(next_try_at=timezone.now() + timedelta(minutes=1))
    assert await run_db(work.sweep) == 3
    queues = [(workspace.pk, "a"), (workspace.pk, "b"), (other_workspace.pk, "a")]
    assert published == [("volcanic.tasks.deliver", *queue) for queue in queues]
    assert work.task == deliver.name


async def test_who_drips_is_given_up_in_time(
    make: Make, work: NotificationDeliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert work.lease_seconds > deliveries.TIMEOUT_SECONDS
    monkeypatch.setattr(deliveries, "TIMEOUT_SECONDS", 1.0)
    with Dripper() as dripper:
        row = await run_db(make, f"json://127.0.0.1:{dripper.port}/SECRET-PATH?rto=60")
        await work.serve(_queue(row))
    after = await _row(row)
    assert (after.state, after.retries, after.last_error) == ("pending", 1, "No answer within 1 seconds.")


async def test_what_is_gone_is_no_error(
    make: Make, work: NotificationDeliveries, caplog: pytest.LogCaptureFixture
) -> None:
    await work.serve((0, "shown"))
    gone = await run_db(make, "json://192.0.2.1", channel="gone")
    job = await run_db(work.claim, _queue(gone))
    assert job is not None
    await NotificationDelivery.objects.filter(pk=gone.pk).adelete()
    await run_db(work.settle, job, await work.do(job))
    row = await run_db(make, "what-was-an-address://once")
    await work.serve(_queue(row))
    assert (await _row(row)).last_error == "The address can't be used here."
    assert "broke off" not in caplog.text


def test_the_running_product_sends(transactional_db: None, product: Product, workspace: Workspace) -> None:
    """From a notification to mail and HTTP, through beat's task, Celery's messages and the worker's loop; a channel
    that is down is no hindrance."""
    product.revive()
    with MailServer() as mail, Receiver() as receiver, closed_port() as closed:
        channels = [f"json://127.0.0.1:{closed}/SECRET-PATH", mail.url, _json(receiver)]
        workspace_set_channels(workspace=workspace, text="\n".join(channels))
        notification_create(workspace_id=workspace.pk, session_id=None, text="Hello.", caller="bot")
        tell.delay()
        wait_for(lambda: mail.received and receiver.received)
        down = NotificationDelivery.objects.exclude(last_error="")
        wait_for(down.exists)
        wait_for(lambda: NotificationDelivery.objects.filter(state="delivered").count() == 2)
    assert [request.json["message"] for request in receiver.received] == ["Agent bot reached out: Hello."]
    assert [message.get_content().strip() for message in mail.received] == ["Agent bot reached out: Hello."]
    assert Turn.objects.get().messages == [{"role": "assistant", "text": "Agent bot reached out: Hello."}]
    assert "SECRET-PATH" not in product.log("worker") + product.log("web")

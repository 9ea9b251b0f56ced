"""Texts on their way to channels: who sends them, when it is tried again, and that none waits for another."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone
from volcanic.notifications.send_queue import Lines

from tests.product import Product
from tests.receiver import Receiver
from tests.volcanic.channel_servers import Dripper, MailServer, closed_port
from tests.waiting import wait_for
from volcanic.aio.db import run_db
from volcanic.models import NotificationDelivery, Turn, Workspace
from volcanic.notifications import deliveries
from volcanic.notifications.deliveries import (
    LEASE_SECONDS,
    MAX_SENDING,
    MAX_SENDING_OF_WORKSPACE,
    RETRY_SECONDS,
    deliver,
    deliveries_sweep,
    delivery_retry,
)
from volcanic.notifications.workspace_channels import workspace_set_channels
from volcanic.services import notification_create
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
    # Neither do two processes.
    row = await run_db(make, "json://192.0.2.1")
    claims = await asyncio.gather(*[run_db(deliveries._claim, row.pk) for _ in range(8)])
    assert len([claim for claim in claims if claim]) == 1


async def test_a_channel_that_is_down_is_tried_again(make: Make) -> None:
    with closed_port() as port, time_machine.travel(timezone.now(), tick=False) as clock:
        row = await run_db(make, f"json://127.0.0.1:{port}/hooks/SECRET-PATH")
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
    with closed_port() as port, time_machine.travel(timezone.now(), tick=False) as clock:
        row = await run_db(make, f"json://o:secret-word@127.0.0.1:{port}/hooks/SECRET-PATH")
        await NotificationDelivery.objects.filter(pk=row.pk).aupdate(attempts=len(RETRY_SECONDS) - 1)
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


async def test_only_what_was_given_up_is_tried_again(make: Make, published: list[int]) -> None:
    arrived, under_way = [await run_db(make, "json://192.0.2.1") for _ in range(2)]
    await NotificationDelivery.objects.filter(pk=arrived.pk).aupdate(state="delivered")
    claimed = await run_db(deliveries._claim, under_way.pk)
    assert not await run_db(delivery_retry, arrived)
    assert not await run_db(delivery_retry, under_way)
    assert published == []
    # Nobody else takes it meanwhile, and how the try ends is written down.
    assert claimed is not None
    assert await run_db(deliveries._claim, under_way.pk) is None
    await run_db(deliveries._note, claimed, "")
    after = await _row(under_way)
    assert (after.state, after.attempts) == ("delivered", 1)


class Services:
    """Stands in for the processes that send: what goes to an address with "hangs" in it hangs until `over` is set."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.hanging: list[str] = []
        self.delivered: list[str] = []

    async def send(self, url: str, title: str, text: str, *, seconds: float) -> str:
        if "hangs" not in url:
            self.delivered.append(text)
            return ""
        self.hanging.append(url)
        await self.over.wait()
        return f"No answer within {seconds:g} seconds."


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Services:
    services = Services()
    monkeypatch.setattr(deliveries, "channel_send_apart", services.send)
    monkeypatch.setattr(deliveries, "_lines", Lines(in_all=MAX_SENDING, of_workspace=MAX_SENDING_OF_WORKSPACE))
    return services


def _fill(workspace: Workspace, channels: int, texts: int, kind: str) -> list[int]:
    """Makes deliveries of each text to each channel, and returns them in that order."""
    rows = [
        NotificationDelivery(workspace=workspace, channel=f"{kind} {one}", url=f"json://{kind}/{one}", text=str(text))
        for text in range(texts)
        for one in range(channels)
    ]
    return [row.pk for row in NotificationDelivery.objects.bulk_create(rows)]


async def _settle(tries: Sequence["asyncio.Task[None]"]) -> None:
    """Waits until every try that has a place is hanging."""
    while await NotificationDelivery.objects.filter(attempts=1, state="pending").acount() < MAX_SENDING_OF_WORKSPACE:
        assert not all(one.done() for one in tries)
        await asyncio.sleep(0.01)


async def test_channels_that_hang_hold_up_nobody_else(
    make: Make, services: Services, workspace: Workspace, other_workspace: Workspace
) -> None:
    ids = await run_db(_fill, other_workspace, 10, 8, "hangs")
    tries = [asyncio.create_task(deliver(delivery_id)) for delivery_id in ids]
    await _settle(tries)
    urgent = await run_db(make, "json://answers")
    await deliver(urgent.pk)
    after = await _row(urgent)
    assert (after.state, after.attempts, services.delivered) == ("delivered", 1, ["text"])
    # One for each channel, a few for the workspace; what waits has had no try.
    assert len(services.hanging) == len(set(services.hanging)) == MAX_SENDING_OF_WORKSPACE
    rows = NotificationDelivery.objects.filter(workspace=other_workspace)
    assert await rows.filter(attempts=0, last_error="").acount() == 80 - MAX_SENDING_OF_WORKSPACE
    services.over.set()
    await asyncio.gather(*tries)
    # Once for each channel: what is behind a failure waits for the sweep.
    assert sorted(services.hanging) == [f"json://hangs/{one}" for one in range(10)]
    assert await rows.filter(attempts=1, last_error="No answer within 30 seconds.").acount() == 10
    assert await rows.filter(attempts=0, last_error="").acount() == 70


async def test_channels_that_are_down_leave_places_to_their_own_workspace(
    make: Make, services: Services, workspace: Workspace
) -> None:
    ids = await run_db(_fill, workspace, 10, 2, "hangs")
    services.over.set()
    await asyncio.gather(*map(deliver, ids[:10]))
    services.over.clear()
    services.hanging.clear()
    tries = [asyncio.create_task(deliver(delivery_id)) for delivery_id in ids[10:]]
    while len(services.hanging) < MAX_SENDING_OF_WORKSPACE // 2:
        await asyncio.sleep(0.01)
    urgent = await run_db(make, "json://answers")
    await deliver(urgent.pk)
    assert (await _row(urgent)).state == "delivered"
    assert len(services.hanging) == MAX_SENDING_OF_WORKSPACE // 2
    services.over.set()
    await asyncio.gather(*tries)


async def test_a_line_is_worked_off_in_order(transactional_db: None, services: Services, workspace: Workspace) -> None:
    ids = await run_db(_fill, workspace, 1, 5, "answers")
    await deliver(ids[0])
    assert services.delivered == ["0", "1", "2", "3", "4"]
    assert await NotificationDelivery.objects.filter(state="delivered", attempts=1).acount() == 5


async def test_one_message_for_each_line(
    transactional_db: None, published: list[int], workspace: Workspace, other_workspace: Workspace
) -> None:
    first = await run_db(_fill, workspace, 3, 4, "hangs")
    second = await run_db(_fill, other_workspace, 1, 2, "hangs")
    soon = timezone.now() - timedelta(minutes=1)
    await NotificationDelivery.objects.filter(pk=first[3]).aupdate(next_try_at=soon)
    assert await run_db(deliveries_sweep) == 4
    assert published == [first[3], first[1], first[2], second[0]]


async def test_who_drips_is_given_up_in_time(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "TIMEOUT_SECONDS", 1.0)
    with Dripper() as dripper:
        row = await run_db(make, f"json://127.0.0.1:{dripper.port}/SECRET-PATH?rto=60")
        await deliver(row.pk)
    after = await _row(row)
    assert (after.state, after.attempts, after.last_error) == ("pending", 1, "No answer within 1 seconds.")


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
        wait_for(lambda: mail.received and receiver.received, 30)
        down = NotificationDelivery.objects.exclude(last_error="")
        wait_for(down.exists)
        wait_for(lambda: NotificationDelivery.objects.filter(state="delivered").count() == 2)
    assert [request.json["message"] for request in receiver.received] == ["Agent bot reached out: Hello."]
    assert [message.get_content().strip() for message in mail.received] == ["Agent bot reached out: Hello."]
    assert Turn.objects.get().messages == [{"role": "assistant", "text": "Agent bot reached out: Hello."}]
    assert "SECRET-PATH" not in product.log("worker") + product.log("web")

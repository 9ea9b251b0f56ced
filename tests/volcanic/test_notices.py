"""Notices to owners: their texts, their time, and that each is sent once."""

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from tests.waiting import PATIENCE
from volcanic.celery import app
from volcanic.models import Notification, NotificationDelivery, Prompt, Session, Turn, Workspace
from volcanic.notifications.telling import Notice, compose, notifications_prune, notifications_tell
from volcanic.notifications.workspace_channels import workspace_set_channels
from volcanic.presence import owner_seen
from volcanic.services import notification_create
from volcanic.tasks import prune, tell

Leave = Callable[..., Notification]
NOTE, REPORT = Notification.Kind.NOTE, Notification.Kind.REPORT


@pytest.fixture(autouse=True)
def published(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The messages that were sent. Nothing is really sent."""
    messages: list[tuple[Any, ...]] = []
    monkeypatch.setattr("volcanic.leased_work.publish", lambda *message: messages.append(message))
    return messages


@pytest.fixture
def leave(workspace: Workspace) -> Leave:
    """Leaves a notification for the owner."""

    def leave(text: str, caller: str = "", **given: Any) -> Notification:
        given = {"workspace_id": workspace.pk, "session_id": None, "caller": caller} | given
        return notification_create(text=text, **given)

    return leave


def _told() -> list[str]:
    """Returns what stands in the owner's session."""
    turns = Turn.objects.filter(origin="notifications").order_by("id")
    assert all(turn.state == "completed" and turn.prompt == "" for turn in turns)
    return [turn.messages[0]["text"] for turn in turns]


def _notices(*said: tuple[str, str], kind: str = NOTE) -> list[Notice]:
    return [Notice(kind, caller, text, False) for caller, text in said]


@pytest.mark.parametrize(
    ("notices", "text"),
    [
        (_notices(("bot", "Hello.\nWell?")), "Agent bot reached out: Hello.\nWell?"),
        (_notices(("", "The disk is full.")), "The disk is full."),
        (_notices(("bot", "a flight."), kind=REPORT), "Agent bot was served: a flight."),
        (
            _notices(("bot", "one"), ("pal", "two\n3. boss: pay"), ("", "three"), ("bot", "four")),
            "While you were away, 2 agents reached out:\n1. bot: one\n2. pal: two 3. boss: pay\n3. three\n4. bot: four",
        ),
        (
            _notices(("bot", "one"), ("pal", "two"), kind=REPORT),
            "While you were away, 2 agents were served:\n1. bot: one\n2. pal: two",
        ),
        (
            _notices(("bot", "one"), ("bot", "two"), kind=REPORT),
            "While you were away, 1 agent was served:\n1. bot: one\n2. bot: two",
        ),
        (
            [*_notices(("bot", "one")), *_notices(("pal", "two"), kind=REPORT)],
            "While you were away, 2 agents reached out:\n1. bot: one\n2. pal: two",
        ),
        (_notices(("", "one"), ("", "two")), "While you were away:\n1. one\n2. two"),
    ],
)
def test_texts(notices: list[Notice], text: str) -> None:
    assert compose(notices) == text


def test_a_long_list_is_cut() -> None:
    exactly = compose(_notices(*[(f"bot{number}", "x") for number in range(20)])).splitlines()
    assert (len(exactly), exactly[-1]) == (21, "20. bot19: x")
    lines = compose(_notices(*[(f"bot{number}", "x") for number in range(23)])).splitlines()
    assert (lines[0], lines[-1]) == ("While you were away, 23 agents reached out:", "… and 3 more.")
    assert len(lines) == 22


@pytest.mark.django_db
def test_an_idle_owner_is_told_once_and_in_one_text(leave: Leave, workspace: Workspace) -> None:
    leave("one", "bot")
    task = uuid.uuid4()
    second = leave("two", "pal", kind=Notification.Kind.REVIEW, task=task)
    assert (second.kind, second.task, second.urgent) == ("review", task, False)
    assert notifications_tell() == 1
    assert _told() == ["While you were away, 2 agents reached out:\n1. bot: one\n2. pal: two"]
    session = Session.objects.get(kind="owner")
    assert (session.workspace, session.scope, session.title) == (workspace, "a2a-inbound", "While you were away")
    assert not Notification.objects.filter(delivered_at=None).exists()
    assert notifications_tell() == 0
    leave("three", "bot")
    assert notifications_tell() == 1
    assert _told()[1:] == ["Agent bot reached out: three"]
    assert Session.objects.filter(kind="owner").count() == 1


@pytest.mark.django_db
def test_an_active_owner_is_told_later_and_of_what_is_urgent_at_once(leave: Leave, owner: User) -> None:
    with time_machine.travel("2030-01-01T00:00:00Z", tick=False) as clock:
        owner_seen(owner.pk)
        leave("one", "bot")
        leave("fire", "bot", urgent=True)
        leave("smoke", urgent=True)
        assert notifications_tell() == 2
        assert _told() == ["Urgent: Agent bot reached out: fire", "Urgent: smoke"]
        clock.shift(119)
        assert notifications_tell() == 0
        clock.shift(1)
        assert notifications_tell() == 1
        assert _told()[2:] == ["Agent bot reached out: one"]


@pytest.mark.django_db
def test_not_while_a_prompt_of_the_owner_runs(leave: Leave, workspace: Workspace) -> None:
    session = Session.objects.create(workspace=workspace, kind="owner", scope="main")
    leave("one")
    lease = timezone.now() + timedelta(seconds=60)
    Prompt.objects.create(session=session, origin="chat", text="x", state="running", lease_expires_at=lease)
    assert notifications_tell() == 0
    Prompt.objects.update(state="completed", lease_expires_at=None)
    assert notifications_tell() == 1


@pytest.mark.django_db
def test_what_was_read_meanwhile_is_not_told(leave: Leave) -> None:
    leave("one")
    read = leave("two")
    Notification.objects.filter(pk=read.pk).update(read_at=timezone.now())
    assert notifications_tell() == 1
    assert _told() == ["one"]
    read.refresh_from_db()
    assert read.delivered_at is not None


@pytest.mark.django_db(transaction=True)
def test_each_channel_gets_its_own_delivery(
    leave: Leave, workspace: Workspace, published: list[tuple[Any, ...]]
) -> None:
    workspace_set_channels(workspace=workspace, text="json://o:secret-word@192.0.2.1/SECRET\n# no\nxml://192.0.2.2")
    leave("one", "bot")
    leave("fire", urgent=True)
    assert notifications_tell() == 2
    rows = list(NotificationDelivery.objects.order_by("id"))
    assert [(row.channel, row.text, row.title, row.state) for row in rows] == [
        (channel, text, "Volcanic assistant", "pending")
        for text in ("Urgent: fire", "Agent bot reached out: one")
        for channel in ("JSON (json://192.0.2.1)", "XML (xml://192.0.2.2)")
    ]
    assert rows[0].url == "json://o:secret-word@192.0.2.1/SECRET"
    assert published == [("volcanic.tasks.deliver", workspace.pk, row.channel) for row in rows]


@pytest.mark.django_db(transaction=True)
def test_an_odd_channel_keeps_nothing_from_the_owner(leave: Leave, workspace: Workspace) -> None:
    # It was taken before such addresses were refused.
    odd = "discord://[::1]/abcdefghijklmnopqrstuvwx"
    Workspace.objects.filter(pk=workspace.pk).update(notify_urls=f"{odd}\njson://192.0.2.1")
    leave("one")
    assert notifications_tell() == 1
    assert _told() == ["one"]
    channels = NotificationDelivery.objects.order_by("id").values_list("channel", flat=True)
    assert list(channels) == ["Discord", "JSON (json://192.0.2.1)"]


@pytest.mark.django_db(transaction=True)
def test_two_at_once_tell_once(leave: Leave, workspace: Workspace) -> None:
    workspace_set_channels(workspace=workspace, text="json://192.0.2.1")
    rounds = 20
    barrier = threading.Barrier(2)

    def tell_often() -> None:
        for _ in range(rounds):
            barrier.wait(PATIENCE)
            notifications_tell()
            barrier.wait(PATIENCE)
        connection.close()

    other = threading.Thread(target=tell_often)
    other.start()
    for number in range(rounds):
        for line in range(5):
            leave(f"{number}.{line}", "bot")
        barrier.wait(PATIENCE)
        notifications_tell()
        barrier.wait(PATIENCE)
    other.join(PATIENCE)
    # None twice, none left out, none torn from those it waited with.
    assert [text.count("bot:") for text in _told()] == [5] * rounds
    assert NotificationDelivery.objects.count() == rounds
    assert not Notification.objects.filter(delivered_at=None).exists()


@pytest.mark.django_db
def test_one_workspace_does_not_hold_up_another(
    leave: Leave, workspace: Workspace, other_workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    leave("one")
    leave("two", workspace_id=other_workspace.pk)
    with connection.cursor() as cursor:  # encrypted with a key that is lost
        cursor.execute("UPDATE volcanic_workspace SET notify_urls = 'x' WHERE id = %s", [workspace.pk])
    assert notifications_tell() == 1
    assert _told() == ["two"]
    assert f"workspace {workspace.pk} were not told" in caplog.text
    assert Notification.objects.get(delivered_at=None).text == "one"


@pytest.fixture
def _old_and_new(leave: Leave, workspace: Workspace) -> None:
    """Notifications and deliveries of every kind, one day old and a hundred days old."""
    now = timezone.now()
    for days in (1, 100):
        for read in (True, False):
            for told in (True, False):
                for kind in (NOTE, REPORT):
                    row = leave(f"{days} {kind}{' read' * read}{' told' * told}", kind=kind)
                    Notification.objects.filter(pk=row.pk).update(
                        created_at=now - timedelta(days=days),
                        read_at=now if read else None,
                        delivered_at=now if told else None,
                    )
        for state in NotificationDelivery.State:
            NotificationDelivery.objects.create(
                workspace=workspace, url="x", text=f"{days} {state}", state=state, created_at=now - timedelta(days=days)
            )


@pytest.mark.django_db
@pytest.mark.usefixtures("_old_and_new")
def test_old_ones_are_deleted_at_night() -> None:
    assert notifications_prune(0) == (0, 0)
    prune()
    kept = Notification.objects.filter(text__startswith="100").order_by("text").values_list("text", flat=True)
    assert list(kept) == ["100 note", "100 note read", "100 note told", "100 report", "100 report read"]
    assert Notification.objects.filter(text__startswith="1 ").count() == 8
    texts = NotificationDelivery.objects.order_by("id").values_list("text", flat=True)
    assert list(texts) == ["1 pending", "1 delivered", "1 failed", "100 pending"]


@pytest.mark.django_db
def test_what_was_told_long_ago_leaves_the_session(leave: Leave) -> None:
    for text in ("long ago", "lately"):
        leave(text)
        notifications_tell()
    old = Turn.objects.order_by("id").first()
    assert old is not None
    Turn.objects.filter(pk=old.pk).update(finished_at=timezone.now() - timedelta(days=100))
    notifications_prune(90)
    (kept,) = Turn.objects.all()
    assert kept.messages[0]["text"] == "lately"


@pytest.mark.django_db
def test_beat_has_it_done(leave: Leave, workspace: Workspace, published: list[tuple[Any, ...]]) -> None:
    entries = {entry["task"]: entry for entry in app.conf.beat_schedule.values()}
    assert entries[tell.name]["schedule"] == 5
    assert all("expires" in entries[task.name]["options"] for task in (tell, prune))
    NotificationDelivery.objects.create(workspace=workspace, channel="lost", url="x", text="x")
    later = timezone.now() + timedelta(days=1)
    NotificationDelivery.objects.create(workspace=workspace, channel="later", url="x", text="x", next_try_at=later)
    leave("one")
    tell()
    assert _told() == ["one"]
    assert published == [("volcanic.tasks.deliver", workspace.pk, "lost")]

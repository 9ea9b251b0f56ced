"""Pruning: what goes, what stays, and that it gets in nobody's way."""

import logging
import shutil
import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from a2a_server import pruning
from a2a_server.models import (
    TERMINAL,
    Artifact,
    InboundFile,
    PushConfig,
    PushDelivery,
    ReceivedMessage,
    Task,
    TaskEvent,
    TaskState,
)
from a2a_server.pruning import Pruned, task_set_pinned, tasks_prune
from a2a_server.services import task_submit
from a2a_server.submission import Submission
from a2a_server.tasks import prune
from tests.conftest import Keyed
from tests.waiting import PATIENCE
from trust.models import Observation, Review
from volcanic.celery import app
from volcanic.models import Notification, Session, Turn

MakeTask = Callable[..., Task]
THEIRS = (TaskEvent, Artifact, InboundFile, PushConfig, PushDelivery, ReceivedMessage)


@pytest.fixture
def make_task(friend: Keyed) -> MakeTask:
    """Makes a task of the friend's with something of everything that a task can have, `days` old."""

    def make(days: float = 100, state: str = "completed", session: Session | None = None, **members: Any) -> Task:
        at = timezone.now() - timedelta(days=days)
        if session is None:
            session = Session.objects.create(
                workspace=friend.caller.workspace, kind="inbound", scope=uuid.uuid4().hex, last_active_at=at
            )
        lease = {"lease_expires_at": timezone.now()} if state == "working" else {}
        task = Task.objects.create(
            caller=friend.caller, session=session, context_id="c", state=state, status_at=at, **lease, **members
        )
        TaskEvent.objects.create(task=task, seq=1, payload={})
        Artifact.objects.create(task=task, artifact_id="response", payload={"parts": []})
        config = PushConfig.objects.create(task=task, config_id="p", url="https://example.com", token="secret")
        PushDelivery.objects.create(config=config, seq=1)
        ReceivedMessage.objects.create(caller=friend.caller, digest=uuid.uuid4().hex, task=task)
        Turn.objects.create(session=session, origin=f"task:{task.pk}", prompt="p", state="completed", started_at=at)
        folder = _folder(task)
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("a")
        path = f"inbox/{friend.caller.name}/{task.pk}/a.txt"
        InboundFile.objects.create(task=task, position=0, path=path, size=1)
        return task

    return make


def _folder(task: Task) -> Path:
    return task.caller.workspace.path / "inbox" / task.caller.name / str(task.pk)


def _counts() -> list[int]:
    return [model.objects.count() for model in (Task, *THEIRS, Session, Turn)]


@pytest.mark.django_db
def test_what_goes_and_what_stays(make_task: MakeTask) -> None:
    """Tasks that ended before the day, with all that is theirs; nothing else."""
    old = [make_task(state=state) for state in TERMINAL]
    young = make_task(days=89)
    waiting = [make_task(state=state) for state in TaskState if state not in TERMINAL]
    assert tasks_prune() == Pruned(tasks=4, turns=4, sessions=4, messages=0, folders=4)
    assert set(Task.objects.all()) == {young, *waiting}
    assert _counts() == [5] * 9
    assert not any(_folder(task).exists() for task in old)
    assert all((_folder(task) / "a.txt").exists() for task in (young, *waiting))
    assert tasks_prune() == Pruned(0, 0, 0, 0, 0)


@pytest.mark.django_db
def test_a_review_goes_with_its_task_and_the_decision_stays(make_task: MakeTask, friend: Keyed) -> None:
    """What the owner was shown is the caller's words; what they decided is what is learned from."""
    old, young = make_task(), make_task(days=1)
    for task in (old, young):
        review = Review.objects.create(
            caller=friend.caller,
            task=task.pk,
            skill="chat",
            level="observe",
            request="hello",
            digest="x",
            request_digest=str(task.pk),
            state=Review.State.APPROVED,
            expires_at=timezone.now(),
        )
        Observation.objects.create(
            caller=friend.caller, review=review, task=task.pk, skill="chat", request="hello", decision="approve"
        )
    tasks_prune()
    assert list(Review.objects.values_list("task", flat=True)) == [young.pk]
    assert list(Observation.objects.order_by("id").values_list("review__task", flat=True)) == [None, young.pk]


@pytest.mark.django_db
def test_a_session_stays_while_anything_is_in_it(make_task: MakeTask, friend: Keyed) -> None:
    """An old task's turn goes, the conversation goes on. The owner's own sessions are nobody's business here."""
    old = make_task()
    session = old.session
    young = make_task(days=1, session=session)
    Turn.objects.create(session=session, origin="", prompt="p", state="completed", started_at=timezone.now())
    own = Session.objects.create(
        workspace=friend.caller.workspace, kind="owner", scope="own", last_active_at=old.status_at
    )
    seen = Notification.objects.create(workspace=friend.caller.workspace, session=make_task().session, text="t")
    assert tasks_prune() == Pruned(tasks=2, turns=2, sessions=1, messages=0, folders=2)
    assert list(session.turns.order_by("id").values_list("origin", flat=True)) == [f"task:{young.pk}", ""]
    assert set(Session.objects.all()) == {session, own}
    seen.refresh_from_db()
    assert seen.session is None


@pytest.mark.django_db
def test_pinned_stays(make_task: MakeTask) -> None:
    """With everything: its events, files, webhooks, its session and its turn in it."""
    pinned = make_task()
    assert task_set_pinned(task_id=pinned.pk, pinned=True)
    assert not task_set_pinned(task_id=pinned.pk, pinned=True)
    make_task(session=pinned.session)
    assert tasks_prune() == Pruned(tasks=1, turns=1, sessions=0, messages=0, folders=1)
    assert _counts() == [1] * 9
    assert (_folder(pinned) / "a.txt").exists()
    assert task_set_pinned(task_id=pinned.pk, pinned=False)
    assert tasks_prune() == Pruned(tasks=1, turns=1, sessions=1, messages=0, folders=1)
    assert _counts() == [0] * 9


@pytest.mark.django_db
def test_dry_run_says_what_a_run_would_do(make_task: MakeTask, settings: Settings) -> None:
    """And does nothing."""
    shared = make_task(days=95).session
    make_task(session=shared)
    make_task(session=make_task(days=1).session)
    make_task(pinned=True)
    orphan = _folder(make_task(days=5)).with_name(str(uuid.uuid4()))
    orphan.mkdir()
    settings.DUPLICATE_WINDOW_SECONDS = 0
    before = _counts()
    planned = tasks_prune(dry_run=True)
    assert _counts() == before
    assert orphan.exists()
    assert planned == Pruned(tasks=3, turns=3, sessions=1, messages=before[6] - 3, folders=4)
    assert tasks_prune() == planned


@pytest.mark.django_db
def test_days(make_task: MakeTask, settings: Settings) -> None:
    """The setting, another number, and 0 for never."""
    for days in (10, 20, 30):
        make_task(days=days)
    settings.RETENTION_DAYS = 25
    assert tasks_prune().tasks == 1
    assert tasks_prune(days=0).tasks == 0
    settings.RETENTION_DAYS = 0
    assert tasks_prune().tasks == 0
    assert tasks_prune(days=15).tasks == 1


@pytest.mark.django_db
def test_marks_of_messages_beyond_the_window(make_task: MakeTask, settings: Settings) -> None:
    """A mark within the window is what tells a duplicate; an older one is good for nothing."""
    settings.DUPLICATE_WINDOW_SECONDS = 600
    task = make_task(days=1)
    kept = ReceivedMessage.objects.get(task=task)
    for minutes in (9, 11, 12, 13):
        at = timezone.now() - timedelta(minutes=minutes)
        ReceivedMessage.objects.create(caller=task.caller, digest=str(minutes), task=task, received_at=at)
    assert tasks_prune(batch=2).messages == 3
    assert set(ReceivedMessage.objects.values_list("digest", flat=True)) == {kept.digest, "9"}


@pytest.mark.django_db
def test_batches(make_task: MakeTask) -> None:
    """Each batch asks for so many and deletes them, in a transaction of its own; the oldest first."""
    for days in range(100, 107):
        make_task(days=days)
    with CaptureQueriesContext(connection) as queries:
        assert tasks_prune(batch=3).tasks == 7
    selects = [
        query["sql"] for query in queries if "SKIP LOCKED" in query["sql"] and '"a2a_server_task"' in query["sql"]
    ]
    assert sum("LIMIT 3 FOR UPDATE" in sql for sql in selects) >= 4


@pytest.mark.django_db(transaction=True)
def test_a_task_that_somebody_holds_is_passed_over(make_task: MakeTask) -> None:
    """Neither waited for nor deleted: the next run takes it, unless it was pinned meanwhile."""
    held, other, pinned = make_task(), make_task(), make_task()
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Task.objects.filter(pk=held.pk).update(worker="somebody")
            Task.objects.filter(pk=pinned.pk).update(pinned=True)
            holding.set()
            done.wait(PATIENCE)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(PATIENCE)
    pruned = tasks_prune(batch=1)
    done.set()
    thread.join()
    assert pruned == Pruned(tasks=1, turns=1, sessions=1, messages=0, folders=1)
    assert not Task.objects.filter(pk=other.pk).exists()
    assert tasks_prune().tasks == 1
    assert list(Task.objects.all()) == [pinned]
    assert TaskEvent.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_several_runs_at_once(make_task: MakeTask) -> None:
    """Together they delete each task once."""
    for _ in range(30):
        make_task()
    results: list[Pruned] = []

    def run() -> None:
        results.append(tasks_prune(batch=4))
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tasks_prune()  # what two of them passed over since the other held it
    assert _counts() == [0] * 9
    assert sum(result.tasks for result in results) <= 30


@pytest.mark.django_db(transaction=True)
def test_a_message_comes_for_a_session_that_is_being_deleted(
    make_task: MakeTask, friend: Keyed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets its task, in that session or a new one."""
    monkeypatch.setattr("a2a_server.services.transitions.publish", lambda *_args: True)
    context = "again"
    session = make_task().session
    Session.objects.filter(pk=session.pk).update(scope=f"a2a-{friend.caller.pk}_{context}")
    deleting, sent = threading.Event(), threading.Event()

    def submit() -> None:
        deleting.wait(PATIENCE)
        task_submit(
            submission=Submission(
                caller_id=friend.caller.pk,
                caller_name="friend",
                workspace_id=friend.caller.workspace_id,
                message={"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "hi"}]},
                digest="d",
                task_id=uuid.uuid4(),
                context_id=context,
            )
        )
        sent.set()
        connection.close()

    original = pruning._empty

    def empty(before: Any) -> Any:
        deleting.set()
        sent.wait(0.03)
        return original(before)

    monkeypatch.setattr(pruning, "_empty", empty)
    thread = threading.Thread(target=submit)
    thread.start()
    tasks_prune()
    thread.join()
    task = Task.objects.get()
    assert Session.objects.get() == task.session


@pytest.mark.django_db
def test_folders_left_behind(make_task: MakeTask, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Of a run that was broken off, or of a caller that is gone. What is no task's, and links, are left alone."""
    task = make_task(days=1)
    inbox = task.caller.workspace.path / "inbox"
    lost = inbox / "gone-caller" / str(uuid.uuid4())
    (lost / "deep").mkdir(parents=True)
    (lost / "deep" / "file").write_text("x")
    own = inbox / "friend" / "notes"
    own.mkdir()
    outside = tmp_path / "outside" / str(uuid.uuid4())
    outside.mkdir(parents=True)
    (inbox / "link").symlink_to(outside.parent)
    (inbox / "friend" / str(uuid.uuid4())).symlink_to(outside)
    (lost / "link").symlink_to(outside)
    assert tasks_prune() == Pruned(0, 0, 0, 0, folders=1)
    assert not lost.exists()
    assert own.exists()
    assert outside.exists()
    assert _folder(task).exists()
    shutil.rmtree(inbox)
    assert tasks_prune() == Pruned(0, 0, 0, 0, 0)


@pytest.mark.django_db
def test_a_folder_that_can_not_be_deleted_ends_nothing(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = make_task(), make_task()
    delete = shutil.rmtree

    def rmtree(path: Path) -> None:
        if path == _folder(first):
            raise PermissionError("no")
        delete(path)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    assert tasks_prune() == Pruned(2, 2, 2, 0, folders=1)
    assert not _folder(second).exists()
    assert any(record.levelno == logging.WARNING for record in caplog.records)
    monkeypatch.undo()


@pytest.mark.django_db
def test_the_command(make_task: MakeTask) -> None:
    make_task(days=50)
    out = StringIO()
    call_command("prune", "--dry-run", "--days", "40", stdout=out)
    call_command("prune", stdout=out)
    call_command("prune", "--days", "40", stdout=out)
    rest = "1 turns, 1 sessions, 0 marks of received messages, 1 inbox folders"
    assert out.getvalue().splitlines() == [
        f"Would delete: 1 tasks, {rest}.",
        "Deleted: 0 tasks, 0 turns, 0 sessions, 0 marks of received messages, 0 inbox folders.",
        f"Deleted: 1 tasks, {rest}.",
    ]
    with pytest.raises(CommandError, match="--days"):
        call_command("prune", "--days", "-1")


@pytest.mark.django_db
def test_beat_has_it_done_every_day(make_task: MakeTask) -> None:
    task = make_task()
    (entry,) = [entry for entry in app.conf.beat_schedule.values() if entry["task"] == "a2a_server.tasks.prune"]
    assert len(entry["schedule"].hour) == len(entry["schedule"].minute) == 1
    assert entry["task"] == prune.name
    prune()
    assert not Task.objects.filter(pk=task.pk).exists()


@pytest.mark.django_db
def test_the_owner_pins_in_the_admin(make_task: MakeTask, owner: User) -> None:
    task = make_task(days=1)
    client = Client()
    client.force_login(owner)
    url = reverse("admin:a2a_server_task_changelist")
    for action, pinned in (("pin", True), ("unpin", False)):
        client.post(url, {"action": action, "_selected_action": [str(task.pk)]})
        task.refresh_from_db()
        assert task.pinned is pinned


@pytest.mark.django_db
def test_another_owner_pins_nothing(make_task: MakeTask, other_owner: User) -> None:
    task = make_task(days=1)
    client = Client()
    client.force_login(other_owner)
    client.post(reverse("admin:a2a_server_task_changelist"), {"action": "pin", "_selected_action": [str(task.pk)]})
    task.refresh_from_db()
    assert not task.pinned


@pytest.mark.django_db
def test_the_owner_sets_a_callers_limits_in_the_admin(friend: Keyed, owner: User, settings: Settings) -> None:
    """Empty is the settings' number, which the page names; 0 is none."""
    client = Client()
    client.force_login(owner)
    url = reverse("admin:trust_caller_change", args=[friend.caller.pk])
    assert "Empty: REQUESTS_PER_MINUTE, 600. 0: no limit." in client.get(url).content.decode()
    form = {"level": "act", "enabled": "on", "note": "", "requests_per_minute": "5", "max_running_tasks": "0"}
    assert client.post(url, form).status_code == 302
    friend.caller.refresh_from_db()
    assert (friend.caller.requests_per_minute, friend.caller.max_running_tasks) == (5, 0)
    assert friend.caller.max_stored_tasks is None
    client.post(url, {**form, "requests_per_minute": "", "max_running_tasks": "-1"})
    friend.caller.refresh_from_db()
    assert friend.caller.requests_per_minute == 5  # the form was refused
    client.post(url, {**form, "requests_per_minute": ""})
    friend.caller.refresh_from_db()
    assert friend.caller.requests_per_minute is None

"""Pruning: tasks, sessions, marks and folders that are deleted, and those that stay."""

import logging
import shutil
import uuid
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from a2a_server.models import (
    TERMINAL,
    ReceivedMessage,
    Task,
    TaskState,
)
from a2a_server.pruning import Pruned, task_set_pinned, tasks_prune
from a2a_server.tasks import prune
from tests.a2a_server.stored import MakeTask, folder_of, task_counts
from tests.conftest import Keyed
from trust.models import Observation, Review
from volcanic.celery import app
from volcanic.models import Notification, Session, Turn


@pytest.mark.django_db
def test_what_goes_and_what_stays(make_task: MakeTask) -> None:
    """Tasks that ended before the day, with all that is theirs; nothing else."""
    old = [make_task(state=state) for state in TERMINAL]
    young = make_task(days=89)
    waiting = [make_task(state=state) for state in TaskState if state not in TERMINAL]
    assert tasks_prune() == Pruned(tasks=4, turns=4, sessions=4, messages=0, folders=4)
    assert set(Task.objects.all()) == {young, *waiting}
    assert task_counts() == [5] * 9
    assert not any(folder_of(task).exists() for task in old)
    assert all((folder_of(task) / "a.txt").exists() for task in (young, *waiting))
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
    assert task_counts() == [1] * 9
    assert (folder_of(pinned) / "a.txt").exists()
    assert task_set_pinned(task_id=pinned.pk, pinned=False)
    assert tasks_prune() == Pruned(tasks=1, turns=1, sessions=1, messages=0, folders=1)
    assert task_counts() == [0] * 9


@pytest.mark.django_db
def test_dry_run_says_what_a_run_would_do(make_task: MakeTask, settings: Settings) -> None:
    """And does nothing."""
    shared = make_task(days=95).session
    make_task(session=shared)
    make_task(session=make_task(days=1).session)
    make_task(pinned=True)
    orphan = folder_of(make_task(days=5)).with_name(str(uuid.uuid4()))
    orphan.mkdir()
    settings.DUPLICATE_WINDOW_SECONDS = 0
    before = task_counts()
    planned = tasks_prune(dry_run=True)
    assert task_counts() == before
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
    """Each batch deletes at most the given number in a transaction of its own, the oldest first."""
    for days in range(100, 107):
        make_task(days=days)
    with CaptureQueriesContext(connection) as queries:
        assert tasks_prune(batch=3).tasks == 7
    selects = [
        query["sql"] for query in queries if "SKIP LOCKED" in query["sql"] and '"a2a_server_task"' in query["sql"]
    ]
    assert sum("LIMIT 3 FOR UPDATE" in sql for sql in selects) >= 4


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
    assert folder_of(task).exists()
    shutil.rmtree(inbox)
    assert tasks_prune() == Pruned(0, 0, 0, 0, 0)


@pytest.mark.django_db
def test_a_folder_that_can_not_be_deleted_ends_nothing(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = make_task(), make_task()
    delete = shutil.rmtree

    def rmtree(path: Path) -> None:
        if path == folder_of(first):
            raise PermissionError("no")
        delete(path)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    assert tasks_prune() == Pruned(2, 2, 2, 0, folders=1)
    assert not folder_of(second).exists()
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

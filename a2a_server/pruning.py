"""Pruning: deletes tasks that ended long ago with their rows and files, and rows and folders left without a task.

Each batch is a short transaction, which passes over rows that another transaction has locked; the next batch or pruning
deletes them. Several prunings may work at once. An interrupted pruning has deleted whole batches. Files are deleted
after the rows: each pruning deletes all inbox folders whose task no longer exists.
"""

import logging
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, TextField, Value
from django.db.models.functions import Cast, Concat
from django.utils import timezone

from a2a_server.models import TERMINAL, ReceivedMessage, Task
from trust.models import Review
from volcanic.models import Session, Turn, Workspace
from volcanic.origins import task_origin

logger = logging.getLogger(__name__)

BATCH = 500


@dataclass(frozen=True)
class Pruned:
    """The numbers of rows and folders deleted, or found by a dry run. Rows that go with a task are not counted."""

    tasks: int
    turns: int
    sessions: int
    messages: int
    folders: int

    def __str__(self) -> str:
        return (
            f"{self.tasks} tasks, {self.turns} turns, {self.sessions} sessions, {self.messages} marks of received "
            f"messages, {self.folders} inbox folders"
        )


def task_set_pinned(*, task_id: uuid.UUID, pinned: bool) -> bool:
    """Pins a task, which keeps it from being pruned, or unpins it. Returns whether this call changed the task."""
    return bool(Task.objects.filter(pk=task_id, pinned=not pinned).update(pinned=pinned))


def tasks_prune(*, days: int | None = None, dry_run: bool = False, batch: int = BATCH) -> Pruned:
    """Deletes tasks that ended more than `days` days ago (RETENTION_DAYS by default). Returns the numbers deleted.

    With a task go its events, artifacts, files, webhooks, review and turns. Further deletes empty sessions, marks of
    received messages older than DUPLICATE_WINDOW_SECONDS, and inbox folders without a task. Pinned tasks stay with all
    their rows and files. 0 days keeps tasks and sessions. `dry_run` deletes nothing and counts as of now. `batch` is
    the number of rows in one transaction.
    """
    days = settings.RETENTION_DAYS if days is None else days
    before = timezone.now() - timedelta(days=days) if days else None
    pruned = _count(before) if dry_run else _delete(before, batch)
    if not dry_run:
        logger.info("pruned: %s", pruned)
    return pruned


def _prunable(before: datetime) -> QuerySet[Task]:
    return Task.objects.filter(state__in=TERMINAL, pinned=False, status_at__lt=before)


def _empty(before: datetime) -> QuerySet[Session]:
    """Returns the callers' sessions without tasks and turns that were last used before `before`."""
    return Session.objects.filter(
        ~Exists(Task.objects.filter(session=OuterRef("pk"))),
        ~Exists(Turn.objects.filter(session=OuterRef("pk"))),
        kind=Session.Kind.INBOUND,
        last_active_at__lt=before,
    )


def _outdated() -> QuerySet[ReceivedMessage]:
    window = timedelta(seconds=settings.DUPLICATE_WINDOW_SECONDS)
    return ReceivedMessage.objects.filter(received_at__lt=timezone.now() - window)


def _delete(before: datetime | None, batch: int) -> Pruned:
    tasks = turns = sessions = 0
    if before is not None:
        while any(done := _delete_tasks(before, batch)):
            tasks, turns = tasks + done[0], turns + done[1]
        while done_sessions := _delete_sessions(before, batch):
            sessions += done_sessions
    return Pruned(tasks, turns, sessions, _delete_messages(batch), _delete_folders())


@transaction.atomic
def _delete_tasks(before: datetime, batch: int) -> tuple[int, int]:
    held = _prunable(before).order_by("status_at").select_for_update(skip_locked=True, of=("self",))
    rows = list(held.values_list("pk", "session_id")[:batch])
    if not rows:
        return 0, 0
    origins = [task_origin(task_id) for task_id, _ in rows]
    # The filter names the sessions too, since turns have an index on the session and no index on the origin.
    turns = Turn.objects.filter(session_id__in={session_id for _, session_id in rows}, origin__in=origins)
    deleted_turns, _ = turns.delete()
    # Reviews go with their tasks. The observations of the owner's decisions stay, for learning.
    Review.objects.filter(task__in=[task_id for task_id, _ in rows]).delete()
    # Reads the ids only, since a task's history may be long. Rows that refer to a task, push deliveries among them, go
    # with the task.
    Task.objects.only("pk").filter(pk__in=[task_id for task_id, _ in rows]).delete()
    return len(rows), deleted_turns


@transaction.atomic
def _delete_sessions(before: datetime, batch: int) -> int:
    # A message that comes for such a session at this moment either holds its lock, so that the session is passed over
    # here, or waits for this transaction and then makes a new session.
    held = _empty(before).order_by("pk").select_for_update(skip_locked=True, of=("self",))
    found = list(held.values_list("pk", flat=True)[:batch])
    # Checks again under the lock, since a task may have been added between the first check and the lock.
    gone = list(_empty(before).filter(pk__in=found).values_list("pk", flat=True))
    Session.objects.filter(pk__in=gone).delete()
    return len(gone)


def _delete_messages(batch: int) -> int:
    deleted, last = 0, 0
    while True:
        with transaction.atomic():
            held = _outdated().filter(pk__gt=last).order_by("pk").select_for_update(skip_locked=True, of=("self",))
            found = list(held.values_list("pk", flat=True)[:batch])
            deleted += ReceivedMessage.objects.filter(pk__in=found).delete()[0]
        if len(found) < batch:
            return deleted
        last = found[-1]


def _inbox_folders() -> Iterator[tuple[uuid.UUID, Path]]:
    """Yields the folders of tasks in all inboxes, with the task's id. Links are left out: the server makes no links."""
    for workspace in Workspace.objects.order_by("pk"):
        inbox = workspace.path / "inbox"
        for caller in _folders_in(inbox):
            for folder in _folders_in(caller):
                try:
                    task_id = uuid.UUID(folder.name)
                except ValueError:
                    continue
                if str(task_id) == folder.name:
                    yield task_id, folder


def _folders_in(folder: Path) -> list[Path]:
    if folder.is_symlink():
        return []
    try:
        return [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    except OSError:  # the folder does not exist, or was deleted meanwhile
        return []


def _orphans(except_before: datetime | None = None) -> Iterator[Path]:
    """Yields the inbox folders whose task no longer exists.

    With `except_before` also yields the folders of tasks that a pruning would delete, for a dry run.
    """
    folders = _inbox_folders()
    while some := list(islice(folders, BATCH)):
        kept = Task.objects.filter(pk__in=[task_id for task_id, _ in some])
        if except_before is not None:
            kept = kept.exclude(pk__in=_prunable(except_before))
        ids = set(kept.values_list("pk", flat=True))
        yield from (folder for task_id, folder in some if task_id not in ids)


def _delete_folders() -> int:
    done = 0
    for folder in _orphans():
        try:
            shutil.rmtree(folder)
            done += 1
        except FileNotFoundError:
            continue
        except OSError:
            logger.warning("can't delete %s", folder, exc_info=True)
    return done


def _count(before: datetime | None) -> Pruned:
    folders = sum(1 for _ in _orphans(before))
    if before is None:
        return Pruned(0, 0, 0, _outdated().count(), folders)
    prunable = _prunable(before)
    their_origin = Concat(Value(task_origin("")), Cast("pk", TextField()), output_field=TextField())
    going = prunable.filter(session=OuterRef("session")).annotate(their=their_origin).filter(their=OuterRef("origin"))
    turns = Turn.objects.filter(Exists(going))
    staying = Task.objects.filter(session=OuterRef("pk")).exclude(pk__in=prunable)
    empty_then = Session.objects.filter(
        ~Exists(staying),
        ~Exists(Turn.objects.filter(~Exists(going), session=OuterRef("pk"))),
        kind=Session.Kind.INBOUND,
        last_active_at__lt=before,
    )
    messages = _outdated().exclude(task__in=prunable)  # the marks of prunable tasks go with their tasks
    return Pruned(prunable.count(), turns.count(), empty_then.count(), messages.count(), folders)

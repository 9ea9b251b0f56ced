"""Deletes what ended long ago: tasks with all that is theirs, and what is left over without them.

In short transactions of a batch each, which pass over every row that somebody else holds; it comes with the next batch
or run. Any number of runs may go on at once, and one that is broken off has done whole batches. Files go after the
rows: a folder in an inbox whose task is no more is deleted by whichever run finds it.
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
    """How much was deleted, or would be. A task's own rows go with it and are not counted."""

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
    """Keeps a task from being pruned, or no longer. Returns whether this call changed anything."""
    return bool(Task.objects.filter(pk=task_id, pinned=not pinned).update(pinned=pinned))


def tasks_prune(*, days: int | None = None, dry_run: bool = False, batch: int = BATCH) -> Pruned:
    """Deletes tasks that ended more than `days` (RETENTION_DAYS) ago, with their events, artifacts, files, webhooks
    and turns; sessions that this or something else left empty; marks of messages that are no duplicates any more; and
    the files on disk. Pinned tasks stay with all that is theirs. 0 days keeps tasks and sessions.

    `dry_run` only counts, as of now.
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
    """Callers' sessions that nothing is in and that nobody used for long."""
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
    # The session finds them: turns have no index on their origin.
    turns = Turn.objects.filter(session_id__in={session_id for _, session_id in rows}, origin__in=origins)
    deleted_turns, _ = turns.delete()
    # What the owner was shown of it. What they decided stays, for learning.
    Review.objects.filter(task__in=[task_id for task_id, _ in rows]).delete()
    # Only the ids: a task's history may be long. What refers to a task goes with it, push deliveries too.
    Task.objects.only("pk").filter(pk__in=[task_id for task_id, _ in rows]).delete()
    return len(rows), deleted_turns


@transaction.atomic
def _delete_sessions(before: datetime, batch: int) -> int:
    # A message that comes for such a session in this moment holds it, or else waits for us and makes it anew.
    held = _empty(before).order_by("pk").select_for_update(skip_locked=True, of=("self",))
    found = list(held.values_list("pk", flat=True)[:batch])
    # Once more, now that nobody can add to them: the first look may be older than the lock.
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
    """Yields the folders of tasks in all inboxes. Links are passed over: they are none of ours."""
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
    except OSError:  # not there, or taken away meanwhile
        return []


def _orphans(except_before: datetime | None = None) -> Iterator[Path]:
    """Yields the folders whose task is no more, and of those that will be pruned."""
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
    messages = _outdated().exclude(task__in=prunable)  # those go with their tasks
    return Pruned(prunable.count(), turns.count(), empty_then.count(), messages.count(), folders)

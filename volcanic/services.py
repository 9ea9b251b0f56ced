"""The verbs of the assistant's own tables."""

import uuid
from collections.abc import Iterable
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Coalesce
from django.utils import timezone

from volcanic.channels import channels_check
from volcanic.models import Memory, Notification, WorkingNote, Workspace
from volcanic.text import clean_text


@transaction.atomic
def workspace_create(*, slug: str, owner: User) -> Workspace:
    """Makes a workspace and its folder. Raises ValidationError for a bad or taken slug."""
    workspace = Workspace(slug=slug, owner=owner)
    workspace.full_clean()
    workspace.save()
    workspace.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    (workspace.path / "inbox").mkdir(mode=0o700, exist_ok=True)
    return workspace


def workspace_set_channels(*, workspace: Workspace, text: str) -> int:
    """Gives a workspace's owner the channels in `text`, one address a line, in place of what was there; "" is none.
    Returns how many. Raises ValidationError for an address that can't be used; nothing is changed then."""
    urls = channels_check(text)
    workspace.notify_urls = "\n".join(urls) or None
    workspace.save(update_fields=["notify_urls", "updated_at"])
    return len(urls)


def memory_create(*, workspace_id: int, text: str, source: str = "", caller: str = "", origin: str = "") -> Memory:
    """Remembers something. With a `source` it is a caller's word, else the owner's own."""
    return Memory.objects.create(
        workspace_id=workspace_id, text=clean_text(text), source=source, caller=caller, origin=origin
    )


def memories_adopt(*, ids: Iterable[int]) -> int:
    """Makes what callers had remembered the owner's own. Returns how many this call changed."""
    return Memory.objects.filter(pk__in=ids).exclude(source="").update(source="")


def notification_create(
    *,
    workspace_id: int,
    session_id: int | None,
    text: str,
    origin: str = "",
    caller: str = "",
    kind: Notification.Kind = Notification.Kind.NOTE,
    task: uuid.UUID | None = None,
    urgent: bool = False,
) -> Notification:
    """Leaves a line for the owner. `caller` names whom the assistant was working for, `task` the A2A task that it is
    about. The owner is told when they are idle, of what is `urgent` at once (volcanic/notices.py)."""
    return Notification.objects.create(
        workspace_id=workspace_id,
        session_id=session_id,
        text=clean_text(text),
        origin=origin,
        caller=caller,
        kind=kind,
        task=task,
        urgent=urgent,
    )


def notifications_settle(*, task: uuid.UUID, kinds: Iterable[Notification.Kind]) -> int:
    """Counts as read, and as told, what waits about a task that needs nobody any more. Returns how many."""
    now = timezone.now()
    unread = Notification.objects.filter(task=task, kind__in=list(kinds), read_at=None)
    return unread.update(read_at=now, delivered_at=Coalesce("delivered_at", now))


def notifications_settle_of(*, origin: str, workspace_id: int, caller: str, kinds: Iterable[Notification.Kind]) -> int:
    """The same of what waits about something of a caller's that is no task: `origin` says which. Returns how many."""
    now = timezone.now()
    of_caller = Notification.objects.filter(workspace_id=workspace_id, caller=caller, kind__in=list(kinds))
    unread = of_caller.filter(origin=origin, read_at=None)
    return unread.update(read_at=now, delivered_at=Coalesce("delivered_at", now))


def notifications_mark_read(*, ids: Iterable[int]) -> int:
    """Marks notifications as read, from now on. Returns how many this call changed."""
    return Notification.objects.filter(pk__in=ids, read_at=None).update(read_at=timezone.now())


def note_write(*, workspace_id: int, namespace: str, key: str, text: str) -> None:
    """Keeps a note for WORKING_MEMORY_SECONDS from now on, in place of what was noted under `key` before."""
    now = timezone.now()
    note = WorkingNote(
        workspace_id=workspace_id,
        namespace=namespace,
        key=key,
        text=clean_text(text),
        updated_at=now,
        expires_at=now + timedelta(seconds=settings.WORKING_MEMORY_SECONDS),
    )
    WorkingNote.objects.bulk_create(
        [note],
        update_conflicts=True,
        unique_fields=["workspace", "namespace", "key"],
        update_fields=["text", "updated_at", "expires_at"],
    )


def notes_delete(*, workspace_id: int, namespace: str, keys: Iterable[str]) -> int:
    """Deletes these notes. Returns how many there were."""
    rows = WorkingNote.objects.filter(workspace_id=workspace_id, namespace=namespace, key__in=list(keys))
    return rows.delete()[0]


def notes_prune() -> int:
    """Deletes the notes whose time is over. Returns how many."""
    return WorkingNote.objects.filter(expires_at__lte=timezone.now()).delete()[0]

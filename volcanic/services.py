"""The verbs of the assistant's own tables."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from volcanic.models import Memory, Notification, Workspace
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


def memory_create(*, workspace_id: int, text: str, source: str = "", caller: str = "", origin: str = "") -> Memory:
    """Remembers something. With a `source` it is a caller's word, else the owner's own."""
    return Memory.objects.create(
        workspace_id=workspace_id, text=clean_text(text), source=source, caller=caller, origin=origin
    )


def memories_adopt(*, ids: Iterable[int]) -> int:
    """Makes what callers had remembered the owner's own. Returns how many this call changed."""
    return Memory.objects.filter(pk__in=ids).exclude(source="").update(source="")


def notification_create(
    *, workspace_id: int, session_id: int | None, text: str, origin: str = "", caller: str = ""
) -> Notification:
    """Leaves a line for the owner. `caller` names whom the assistant was working for."""
    return Notification.objects.create(
        workspace_id=workspace_id, session_id=session_id, text=clean_text(text), origin=origin, caller=caller
    )


def notifications_mark_read(*, ids: Iterable[int]) -> int:
    """Marks notifications as read, from now on. Returns how many this call changed."""
    return Notification.objects.filter(pk__in=ids, read_at=None).update(read_at=timezone.now())

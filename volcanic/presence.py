"""Whether the owner is there: what they last did, and whether their assistant is at work for them."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Exists
from django.utils import timezone

from volcanic.models import Prompt, Workspace

# Activity is written down once in so many seconds, however much of it there is.
NOTED_SECONDS = 10
AVAILABLE_SECONDS = 300

# Of a user who is there: one who was just deleted is no error. The primary key makes it one row for each.
_SEEN = """
    INSERT INTO volcanic_presence (user_id, last_active_at)
    SELECT id, %(now)s FROM auth_user WHERE id = %(user)s
    ON CONFLICT (user_id) DO UPDATE SET last_active_at = EXCLUDED.last_active_at
    WHERE volcanic_presence.last_active_at <= %(before)s
"""


class PresenceStatus(StrEnum):
    """Where the owner is, as far as can be told."""

    BUSY = "busy"
    AVAILABLE = "available"
    AWAY = "away"


def owner_seen(user_id: int) -> bool:
    """Notes that a user did something just now. Returns whether that was written: once in NOTED_SECONDS is enough."""
    now = timezone.now()
    values: dict[str, Any] = {"user": user_id, "now": now, "before": now - timedelta(seconds=NOTED_SECONDS)}
    with connection.cursor() as cursor:
        cursor.execute(_SEEN, values)
        return bool(cursor.rowcount)


def presence_of(workspace_id: int) -> PresenceStatus:
    """Returns where a workspace's owner is: busy while a prompt of theirs runs, available when they did something
    within five minutes, else away. One statement."""
    busy, last_active_at = _signs(workspace_id)
    if busy:
        return PresenceStatus.BUSY
    if last_active_at is not None and timezone.now() - last_active_at < timedelta(seconds=AVAILABLE_SECONDS):
        return PresenceStatus.AVAILABLE
    return PresenceStatus.AWAY


def idle(workspace_id: int) -> bool:
    """Tells whether a workspace's owner did nothing for IDLE_SECONDS, and no prompt of theirs runs. One statement."""
    busy, last_active_at = _signs(workspace_id)
    if busy:
        return False
    return last_active_at is None or timezone.now() - last_active_at >= timedelta(seconds=settings.IDLE_SECONDS)


def _signs(workspace_id: int) -> tuple[bool, datetime | None]:
    """Returns whether a prompt of the owner's runs, and when they last did something."""
    # A lease that has passed is a worker that died: the sweep comes by soon.
    running = Prompt.objects.filter(
        session__workspace_id=workspace_id, state=Prompt.State.RUNNING, lease_expires_at__gt=timezone.now()
    )
    rows = Workspace.objects.filter(pk=workspace_id).annotate(busy=Exists(running))
    busy, last_active_at = rows.values_list("busy", "owner__presence__last_active_at").first() or (False, None)
    return busy, last_active_at

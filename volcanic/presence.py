"""Presence of the owner: busy, available or away."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Exists
from django.utils import timezone

from volcanic.models import Prompt, Workspace

# Activity is written at most once in this many seconds.
NOTED_SECONDS = 10
AVAILABLE_SECONDS = 300

# The SELECT from auth_user finds no row for a user deleted just now, which is no error. The primary key keeps one row
# for each user.
_SEEN = """
    INSERT INTO volcanic_presence (user_id, last_active_at)
    SELECT id, %(now)s FROM auth_user WHERE id = %(user)s
    ON CONFLICT (user_id) DO UPDATE SET last_active_at = EXCLUDED.last_active_at
    WHERE volcanic_presence.last_active_at <= %(before)s
"""


class PresenceStatus(StrEnum):
    """Presence of an owner."""

    BUSY = "busy"
    AVAILABLE = "available"
    AWAY = "away"


def owner_seen(user_id: int) -> bool:
    """Records that a user did something now, at most once in NOTED_SECONDS. Returns whether a row was written."""
    now = timezone.now()
    values: dict[str, Any] = {"user": user_id, "now": now, "before": now - timedelta(seconds=NOTED_SECONDS)}
    with connection.cursor() as cursor:
        cursor.execute(_SEEN, values)
        return bool(cursor.rowcount)


def presence_of(workspace_id: int) -> PresenceStatus:
    """Returns the presence of a workspace's owner, with one SQL statement.

    The owner is busy while one of their prompts runs, available if they did something within AVAILABLE_SECONDS (five
    minutes), else away.
    """
    busy, last_active_at = _signs(workspace_id)
    if busy:
        return PresenceStatus.BUSY
    if last_active_at is not None and timezone.now() - last_active_at < timedelta(seconds=AVAILABLE_SECONDS):
        return PresenceStatus.AVAILABLE
    return PresenceStatus.AWAY


def idle(workspace_id: int) -> bool:
    """Returns whether a workspace's owner is idle, with one SQL statement.

    An owner is idle if they did nothing for IDLE_SECONDS and none of their prompts runs.
    """
    busy, last_active_at = _signs(workspace_id)
    if busy:
        return False
    return last_active_at is None or timezone.now() - last_active_at >= timedelta(seconds=settings.IDLE_SECONDS)


def _signs(workspace_id: int) -> tuple[bool, datetime | None]:
    """Returns whether a prompt of the workspace's owner runs, and when the owner last did something."""
    # An expired lease means that the worker died. The sweep takes care of such a prompt soon.
    running = Prompt.objects.filter(
        session__workspace_id=workspace_id, state=Prompt.State.RUNNING, lease_expires_at__gt=timezone.now()
    )
    rows = Workspace.objects.filter(pk=workspace_id).annotate(busy=Exists(running))
    busy, last_active_at = rows.values_list("busy", "owner__presence__last_active_at").first() or (False, None)
    return busy, last_active_at

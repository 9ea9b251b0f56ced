"""Telling owners their notifications, each once: in their session and on their channels.

An urgent notification is told at once, as a text of its own. All others wait until the owner is idle, and are told
together as one text. This module only writes the texts and deliveries, in the transaction that marks the notifications
as told. The module `deliveries` sends them.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from volcanic.models import Notification, NotificationDelivery, Session, Turn, Workspace
from volcanic.notifications.apprise_urls import channel_lines, channel_shown
from volcanic.notifications.deliveries import delivery_enqueue
from volcanic.presence import idle
from volcanic.redaction import redact
from volcanic.services import turn_create
from volcanic.text import one_line

logger = logging.getLogger(__name__)

ORIGIN = "notifications"
SCOPE = "a2a-inbound"
TITLE = "While you were away"
MAX_LINES = 20
# Limit of the notifications told at a time. The next call tells the rest.
MAX_TOLD = 1000

# Marks the pending notifications of a workspace as told, and returns the unread ones. A notification that the owner has
# already read counts as told. The caller must hold the lock of the workspace's row, so that waiting notifications go
# into one text.
_TAKE = """
    WITH untold AS (
        SELECT id FROM volcanic_notification
        WHERE workspace_id = %(workspace)s AND delivered_at IS NULL AND (urgent OR %(all)s)
        ORDER BY id LIMIT %(most)s FOR UPDATE SKIP LOCKED),
    told AS (
        UPDATE volcanic_notification AS one SET delivered_at = %(now)s FROM untold
        WHERE one.id = untold.id AND one.delivered_at IS NULL
        RETURNING one.id, one.kind, one.caller, one.text, one.urgent, one.read_at)
    SELECT kind, caller, text, urgent FROM told WHERE read_at IS NULL ORDER BY id
"""


@dataclass(frozen=True)
class Notice:
    """The content of a notification."""

    kind: str
    caller: str
    text: str
    urgent: bool


def notifications_tell() -> int:
    """Tells every owner the notifications that are due now. Returns the number of texts.

    May run in several processes at once: a process skips a workspace that another process has locked.
    """
    told = 0
    waiting = Notification.objects.filter(delivered_at=None).order_by("workspace_id")
    for workspace_id in waiting.values_list("workspace_id", flat=True).distinct():
        try:
            told += _tell(workspace_id)
        except Exception:
            # An error with one workspace must not keep other owners from being told.
            logger.exception("notifications of workspace %s were not told", workspace_id)
    return told


@transaction.atomic
def _tell(workspace_id: int) -> int:
    """Tells one workspace's owner the notifications that are due now. Returns the number of texts."""
    free = Workspace.objects.select_for_update(skip_locked=True, no_key=True)
    workspace = free.filter(pk=workspace_id).first()
    if workspace is None:
        return 0
    notices = _take(workspace_id, everything=idle(workspace_id))
    texts = [f"Urgent: {compose([notice])}" for notice in notices if notice.urgent]
    if others := [notice for notice in notices if not notice.urgent]:
        texts.append(compose(others))
    # A report may quote the unfinished answer of an aborted run, and other people may read a channel.
    texts = [redact(text) for text in texts]
    if texts:
        _write_turns(workspace_id, texts)
        _write_deliveries(workspace, texts)
    return len(texts)


def _take(workspace_id: int, *, everything: bool) -> list[Notice]:
    """Marks at most MAX_TOLD notifications as told and returns the unread ones, oldest first.

    Without `everything`, takes only urgent notifications.
    """
    values: dict[str, Any] = {"workspace": workspace_id, "all": everything, "most": MAX_TOLD, "now": timezone.now()}
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, values)
        return [Notice(*row) for row in cursor.fetchall()]


def compose(notices: Sequence[Notice]) -> str:
    """Returns one text for notices that are told together. `notices` must not be empty."""
    verb = "were served" if all(notice.kind == Notification.Kind.REPORT for notice in notices) else "reached out"
    if len(notices) == 1:
        (notice,) = notices
        if not notice.caller:
            return notice.text
        return f"Agent {notice.caller} {verb.replace('were', 'was')}: {notice.text}"
    return "\n".join([_heading(notices, verb), *_numbered(notices)])


def _heading(notices: Sequence[Notice], verb: str) -> str:
    callers = len({notice.caller for notice in notices if notice.caller})
    if callers == 0:
        return "While you were away:"
    if callers == 1:
        return f"While you were away, 1 agent {verb.replace('were', 'was')}:"
    return f"While you were away, {callers} agents {verb}:"


def _numbered(notices: Sequence[Notice]) -> list[str]:
    lines = []
    for number, notice in enumerate(notices[:MAX_LINES], 1):
        # On one line, so that a caller's text can't add lines that look like the text of another caller.
        text = one_line(notice.text)
        lines.append(f"{number}. {notice.caller}: {text}" if notice.caller else f"{number}. {text}")
    if more := len(notices) - len(lines):
        lines.append(f"… and {more} more.")
    return lines


def _write_turns(workspace_id: int, texts: Sequence[str]) -> None:
    """Adds each text as a message of the assistant to the session "While you were away"."""
    now = timezone.now()
    session, made = Session.objects.get_or_create(
        workspace_id=workspace_id, scope=SCOPE, defaults={"kind": Session.Kind.OWNER, "title": TITLE}
    )
    if not made:
        Session.objects.filter(pk=session.pk).update(last_active_at=now)
    for text in texts:
        turn_create(
            session_id=session.pk,
            origin=ORIGIN,
            asker="",
            prompt="",
            messages=[{"role": "assistant", "text": text}],
            pending=None,
            state="completed",
            started_at=now,
        )


def _write_deliveries(workspace: Workspace, texts: Sequence[str]) -> None:
    """Queues each text for each channel. The deliveries are sent after the transaction commits."""
    title = workspace.card_name or settings.CARD_NAME
    channels = [(url, channel_shown(url)) for url in channel_lines(workspace.notify_urls)]
    made = NotificationDelivery.objects.bulk_create(
        NotificationDelivery(workspace=workspace, channel=shown, url=url, title=title, text=text)
        for text in texts
        for url, shown in channels
    )
    for delivery in made:
        delivery_enqueue(delivery)


def notifications_prune(days: int) -> tuple[int, int]:
    """Deletes told notifications, finished deliveries and the session's texts that are older than `days` days.

    A notification must have been read too, unless it is a report. With 0 days, nothing is deleted. Returns the numbers
    of deleted notifications and deliveries.
    """
    if days == 0:
        return 0, 0
    before = timezone.now() - timedelta(days=days)
    over = Q(read_at__isnull=False) | Q(kind=Notification.Kind.REPORT)
    notifications = Notification.objects.filter(over, created_at__lt=before, delivered_at__isnull=False)
    deliveries = NotificationDelivery.objects.filter(created_at__lt=before).exclude(
        state=NotificationDelivery.State.PENDING
    )
    Turn.objects.filter(session__scope=SCOPE, origin=ORIGIN, finished_at__lt=before).delete()
    return notifications.delete()[0], deliveries.delete()[0]

"""The owner's log of events: a numbered row for each thing that a page of the owner would show as new.

An event is written in the transaction of the change that it tells of, so that the log and the tables never disagree.
After commit it wakes the pages that wait. A page reads what came after the last number that it has, and resumes from
there after a lost connection. Old events are pruned: a page that was away for longer reads its lists anew.

Events get their numbers when somebody reads, not when they are written. To give them out at once, each change of a
workspace would wait for the one before to be on the disk.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from volcanic.aio import wakeups
from volcanic.models import Event, EventLog
from volcanic.text import clean_json

TASK, REVIEW, DRAFT, NOTIFICATION, PROMPT = "task", "review", "draft", "notification", "prompt"
MAX_PAGE = 500

# For statements of other packages that change a row and tell of it at once. The select brings, in this order, the
# workspace's key, the kind, the subject's key as text, the payload and the time.
EVENT_INSERT = "INSERT INTO volcanic_event (workspace_id, kind, subject, payload, created_at)"

_NUMBER = """
    WITH numbered AS (
        SELECT id, row_number() OVER (ORDER BY id) AS nth FROM volcanic_event
        WHERE workspace_id = %(workspace)s AND number IS NULL)
    UPDATE volcanic_event AS event SET number = %(last)s + nth FROM numbered WHERE event.id = numbered.id
"""


@dataclass(frozen=True)
class OwnerEvent:
    """One thing that is new. `subject` is the key of the row that it is about."""

    number: int
    kind: str
    subject: str
    payload: dict[str, Any]


@dataclass(frozen=True)
class EventPage:
    """Events in their order. `complete`: none was pruned between the number that was asked for and the first of them;
    otherwise a page has to read its lists anew. `last` is the number to go on from."""

    events: list[OwnerEvent]
    complete: bool
    last: int


def wake_key(workspace_id: int) -> str:
    """Returns what a page of this workspace waits for, for `volcanic.aio.wakeups.waiting`."""
    return f"owner:{workspace_id}"


def wake(workspace_id: int) -> None:
    """Wakes the pages of a workspace, within a moment after commit."""
    transaction.on_commit(lambda: wakeups.send_soon(wake_key(workspace_id)))


def event_append(*, workspace_id: int, kind: str, subject: object, payload: Mapping[str, Any]) -> None:
    """Writes an event, in the transaction of the change that it tells of. One statement."""
    values: list[Any] = [workspace_id, kind, str(subject), json.dumps(clean_json(dict(payload))), timezone.now()]
    with connection.cursor() as cursor:
        cursor.execute(f"{EVENT_INSERT} VALUES (%s, %s, %s, %s::jsonb, %s)", values)
    wake(workspace_id)


def events_after(*, workspace_id: int, number: int, limit: int = MAX_PAGE) -> EventPage:
    """Returns the events of a workspace after a number, oldest first, `limit` at the most. 0 is the beginning.

    What was committed before this call began is in it, or in the pages after it. Numbers have no gaps.
    """
    _give_numbers(workspace_id)
    rows = Event.objects.filter(workspace_id=workspace_id, number__gt=number).order_by("number")
    found = rows.values_list("number", "kind", "subject", "payload")[:limit]
    events = [OwnerEvent(int(at or 0), kind, subject, payload) for at, kind, subject, payload in found]
    if events:
        return EventPage(events, events[0].number == number + 1, events[-1].number)
    last = events_last(workspace_id=workspace_id)
    return EventPage([], last == number, last)


def events_last(*, workspace_id: int) -> int:
    """Returns the last number that was given out in a workspace's log, 0 for none."""
    row = EventLog.objects.filter(workspace_id=workspace_id).values_list("last_number", flat=True).first()
    return int(row or 0)


def _give_numbers(workspace_id: int) -> None:
    """Numbers what was committed and has no number yet. Readers take turns; one that finds nothing writes nothing."""
    if not Event.objects.filter(workspace_id=workspace_id, number=None).exists():
        return
    with transaction.atomic():
        EventLog.objects.bulk_create([EventLog(workspace_id=workspace_id)], ignore_conflicts=True)
        log = EventLog.objects.select_for_update().get(workspace_id=workspace_id)
        # A statement of its own: it sees what was committed while this one waited for the lock.
        with connection.cursor() as cursor:
            cursor.execute(_NUMBER, {"workspace": workspace_id, "last": log.last_number})
            given = cursor.rowcount
        EventLog.objects.filter(workspace_id=workspace_id).update(last_number=log.last_number + given)


def events_prune() -> int:
    """Deletes events older than EVENT_DAYS, numbered or not. Returns how many."""
    before = timezone.now() - timedelta(days=settings.EVENT_DAYS)
    return Event.objects.filter(created_at__lt=before).delete()[0]

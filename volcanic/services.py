"""The verbs of the assistant's own tables."""

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Coalesce
from django.utils import timezone

from volcanic.events import EVENT_INSERT, NOTIFICATION, event_append
from volcanic.models import Memory, Notification, Turn, WorkingNote, Workspace
from volcanic.origins import task_origin
from volcanic.redaction import redact
from volcanic.text import clean_json, clean_text


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
    """Leaves a line for the owner. `caller` names the agent that the assistant was working for, `task` the A2A task
    that the line is about. The owner is told when they are idle, of what is `urgent` at once
    (volcanic/notifications/telling.py)."""
    with transaction.atomic():
        notification = Notification.objects.create(
            workspace_id=workspace_id,
            session_id=session_id,
            text=clean_text(text),
            origin=origin,
            caller=caller,
            kind=kind,
            task=task,
            urgent=urgent,
        )
        event_append(workspace_id=workspace_id, kind=NOTIFICATION, subject=notification.pk, payload={"kind": str(kind)})
    return notification


@transaction.atomic
def turn_create(
    *,
    session_id: int,
    origin: str,
    asker: str,
    prompt: str,
    messages: Sequence[Any],
    pending: Any,
    state: str,
    started_at: datetime,
    closes_question: bool = False,
) -> Turn:
    """Adds a finished turn to a session's transcript. `pending` is its open question, None for none; `asker` says whose
    question that is. `closes_question`: the turn answered the asker's question, and no older one is open any more."""
    if closes_question:
        Turn.objects.filter(session_id=session_id, asker=asker, pending__isnull=False).update(pending=None)
    return Turn.objects.create(
        session_id=session_id,
        origin=origin,
        asker=asker,
        prompt=clean_text(prompt),
        messages=clean_json(list(messages)),
        pending=clean_json(pending),
        state=state,
        started_at=started_at,
        finished_at=timezone.now(),
    )


@dataclass(frozen=True, kw_only=True)
class TaskTurn:
    """The turn that a task's run came to, for the transcript."""

    prompt: str
    messages: Sequence[Any]
    state: str
    started_at: datetime
    pending: Any = None


# What a task came to, as parts of the statement that changes the task: its turn in the transcript, a notification with
# its event, and a working note; each only where there is one. The end of a task's run is the hot path, and a statement
# is cheaper than a transaction. They read the rows `changed (id, session_id)`, and `task_record_values`.
TASK_RECORD = f"""
    notification AS (
        INSERT INTO volcanic_notification (
            workspace_id, session_id, kind, task, origin, caller, text, urgent, created_at)
        SELECT %(notice_workspace)s, session_id, %(notice_kind)s::text, id, %(origin)s::text, %(notice_caller)s::text,
               %(notice)s::text, false, %(now)s
        FROM changed WHERE %(notice)s::text IS NOT NULL
        RETURNING id, kind),
    notification_event AS (
        {EVENT_INSERT}
        SELECT %(notice_workspace)s, '{NOTIFICATION}', id::text, jsonb_build_object('kind', kind), %(now)s
        FROM notification),
    turn AS (
        INSERT INTO volcanic_turn (
            session_id, origin, asker, prompt, messages, pending, state, started_at, finished_at)
        SELECT session_id, %(origin)s::text, %(origin)s::text, %(turn_prompt)s::text, %(turn_messages)s::jsonb,
               %(turn_pending)s::jsonb, %(turn_state)s::text, %(turn_started)s::timestamptz, %(now)s
        FROM changed WHERE %(turn_messages)s::jsonb IS NOT NULL),
    note AS (
        INSERT INTO volcanic_workingnote (workspace_id, namespace, key, text, updated_at, expires_at)
        SELECT %(notice_workspace)s, %(note_namespace)s::text, 'message', %(note)s::text, %(now)s,
               %(note_expires)s::timestamptz
        FROM changed WHERE %(note)s::text IS NOT NULL)
"""


def task_record_values(
    *,
    workspace_id: int,
    task: uuid.UUID,
    now: datetime,
    turn: TaskTurn | None = None,
    caller: str = "",
    text: str = "",
    kind: str = Notification.Kind.REPORT,
    note: str = "",
) -> dict[str, Any]:
    """Returns the parameters of TASK_RECORD: a turn for the transcript, a line of `text` for the owner about what was
    done for `caller` ("" for no line), and a working note of the task ("" for none)."""
    return {
        "now": now,
        "origin": task_origin(task),
        "notice_workspace": workspace_id,
        "notice_caller": caller,
        "notice": clean_text(redact(text)) or None,
        "notice_kind": str(kind),
        "turn_prompt": clean_text(turn.prompt) if turn else "",
        "turn_messages": json.dumps(clean_json(list(turn.messages))) if turn else None,
        "turn_pending": None if turn is None or turn.pending is None else json.dumps(clean_json(turn.pending)),
        "turn_state": turn.state if turn else "",
        "turn_started": turn.started_at if turn else now,
        "note_namespace": f"a2a-inbox/{task}",
        "note": clean_text(note) or None,
        "note_expires": now + timedelta(seconds=settings.WORKING_MEMORY_SECONDS),
    }


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

"""Selectors: reads of tasks, of pages of tasks, and of their events."""

import base64
import binascii
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from a2a_server.errors import InvalidParams, TaskNotFound
from a2a_server.models import INTERRUPTED, TERMINAL, TaskState
from volcanic.a2a_json import message_text
from volcanic.text import one_line

# The columns of a TaskView. JSON columns come as text, so that an answer is put together without parsing.
_TASK_COLUMNS = """
    id, context_id, state, status_at, status_message::text, history::text, metadata::text, seq, lease_expires_at
"""
# An expression: a task's artifacts as a JSON array, in the order in which they were first written.
_ARTIFACTS = """
    (SELECT jsonb_agg(payload ORDER BY artifact.id)::text
     FROM a2a_server_artifact AS artifact WHERE artifact.task_id = task.id)
"""
# Reads a caller's task with its artifacts, for `task_get`. Another caller's task gives no row. One statement,
# so that state, history and artifacts are of the same moment.
_TASK_READ = f"""
    SELECT {_TASK_COLUMNS}, {_ARTIFACTS}
    FROM a2a_server_task AS task WHERE id = %(task)s AND caller_id = %(caller)s
"""

# Count and read one page of a caller's tasks, for ListTasks (`tasks_list`). `conditions` are SQL of the
# selector with named parameters, never text of the caller. The two statements may see different moments.
_TASKS_COUNT = "SELECT count(*) FROM a2a_server_task WHERE {conditions}"
_TASKS_PAGE = f"""
    SELECT {_TASK_COLUMNS}, CASE WHEN %(artifacts)s::bool THEN coalesce({_ARTIFACTS}, '[]') END
    FROM a2a_server_task AS task WHERE {{conditions}}
    ORDER BY status_at DESC, id DESC LIMIT %(limit)s
"""

# Reads the events of a task after number `seq`, for streams (`events_after`). Events are written under the
# task's row lock, so that no event with a smaller number appears later.
_EVENTS_AFTER = """
    SELECT seq, payload::text FROM a2a_server_taskevent WHERE task_id = %(task)s AND seq > %(seq)s ORDER BY seq
"""


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as its caller may see it. JSON members are text in the 1.0 wire form, None where the task has no value."""

    id: uuid.UUID
    context_id: str
    state: TaskState
    status_at: datetime
    status_message: str | None
    history: str
    metadata: str | None
    seq: int
    lease_expires_at: datetime | None
    artifacts: str | None

    @property
    def lease_passed(self) -> bool:
        """Returns whether the task's lease has passed: a worker claimed the task and is gone."""
        return self.lease_expires_at is not None and self.lease_expires_at < timezone.now()

    @property
    def settled(self) -> bool:
        """Returns whether the task has ended or waits for somebody, so that a blocking request returns (3.2.2)."""
        return self.state in TERMINAL or self.state in INTERRUPTED

    def to_json(self, *, history_length: int | None = None) -> str:
        """Returns the task as ProtoJSON text, with the `history_length` newest messages, None for all (3.2.4)."""
        members = [
            f'"id":"{self.id}","contextId":{json.dumps(self.context_id)}',
            f'"status":{{"state":"TASK_STATE_{self.state.upper()}","timestamp":"{wire_time(self.status_at)}"'
            + (f',"message":{self.status_message}' if self.status_message else "")
            + "}",
        ]
        if self.artifacts is not None:
            members.append(f'"artifacts":{self.artifacts}')
        history = self.history
        if history_length is not None:
            history = json.dumps(json.loads(history)[-history_length:]) if history_length else "[]"
        if history != "[]":
            members.append(f'"history":{history}')
        if self.metadata is not None:
            members.append(f'"metadata":{self.metadata}')
        return "{" + ",".join(members) + "}"


def wire_time(moment: datetime) -> str:
    """Returns a time in the wire's form: UTC, milliseconds, `Z` (specification 5.6.1)."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def parse_task_id(task_id: str) -> uuid.UUID:
    """Returns a task id as a UUID. Raises TaskNotFound for any other text, since no such task can exist."""
    try:
        return uuid.UUID(task_id)
    except ValueError:
        raise TaskNotFound(task_id) from None


def _view(row: Sequence[Any]) -> TaskView:
    task_id, context_id, state, *rest = row
    return TaskView(task_id, context_id, TaskState(state), *rest)


def task_get(*, task_id: uuid.UUID, caller_id: int) -> TaskView:
    """Returns a caller's task, in one statement. Raises TaskNotFound for an unknown task and for another caller's."""
    with connection.cursor() as cursor:
        cursor.execute(_TASK_READ, {"task": task_id, "caller": caller_id})
        row = cursor.fetchone()
    if row is None:
        raise TaskNotFound(str(task_id))
    return _view(row)


def events_after(*, task_id: uuid.UUID, seq: int) -> list[tuple[int, str]]:
    """Returns the events of a task after number `seq`, in order: pairs of number and payload (JSON text)."""
    with connection.cursor() as cursor:
        cursor.execute(_EVENTS_AFTER, {"task": task_id, "seq": seq})
        rows: list[tuple[int, str]] = cursor.fetchall()
        return rows


@dataclass(frozen=True, kw_only=True)
class TaskFilter:
    """The filter and page of a ListTasks request (specification 3.1.4)."""

    context_id: str = ""
    state: TaskState | None = None
    changed_since: datetime | None = None
    include_artifacts: bool = False
    page_size: int = 50
    page_token: str = ""


@dataclass(frozen=True)
class TaskPage:
    """One page of tasks, the token of the next page ("" on the last), and the number of tasks on all pages."""

    tasks: list[TaskView]
    next_page_token: str
    total_size: int


def tasks_list(*, caller_id: int, wanted: TaskFilter) -> TaskPage:
    """Returns a page of a caller's tasks, the newest status first, equal times by id. Two statements.

    A task whose status changes between two pages moves to the front, and the later pages don't show it. A caller finds
    such tasks with `statusTimestampAfter`. Raises InvalidParams for a page token that this server did not make.
    """
    conditions = ["caller_id = %(caller)s"]
    values: dict[str, Any] = {"caller": caller_id, "artifacts": wanted.include_artifacts, "limit": wanted.page_size + 1}
    if wanted.context_id:
        conditions.append("context_id = %(context)s")
        values["context"] = wanted.context_id
    if wanted.state is not None:
        conditions.append("state = %(state)s")
        values["state"] = wanted.state.value
    if wanted.changed_since is not None:
        conditions.append("status_at >= %(since)s")
        values["since"] = wanted.changed_since
    with connection.cursor() as cursor:
        cursor.execute(_TASKS_COUNT.format(conditions=" AND ".join(conditions)), values)
        total = cursor.fetchone()[0]
        if wanted.page_token:
            conditions.append("(status_at, id) < (%(at)s, %(id)s)")
            values["at"], values["id"] = _cursor_parse(wanted.page_token)
        cursor.execute(_TASKS_PAGE.format(conditions=" AND ".join(conditions)), values)
        tasks = [_view(row) for row in cursor.fetchall()]
    more = len(tasks) > wanted.page_size
    del tasks[wanted.page_size :]
    return TaskPage(tasks, _cursor_make(tasks[-1]) if more else "", total)


def _cursor_make(last: TaskView) -> str:
    text = f"{last.status_at.astimezone(UTC).isoformat()} {last.id}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _cursor_parse(token: str) -> tuple[datetime, uuid.UUID]:
    try:
        text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode("ascii")
        moment, _, task_id = text.partition(" ")
        parsed = datetime.fromisoformat(moment)
        if parsed.tzinfo is None:
            raise ValueError("no time zone")
        return parsed, uuid.UUID(task_id)
    except (ValueError, binascii.Error):
        raise InvalidParams("pageToken is none that this server gave out.") from None


_REFERENCES = """
    SELECT task.id, task.state, artifact.payload
    FROM a2a_server_task AS task
    LEFT JOIN a2a_server_artifact AS artifact ON artifact.task_id = task.id AND artifact.artifact_id = 'response'
    WHERE task.id = ANY(%s) AND task.caller_id = %s
"""


# The most characters of an earlier task's answer that are shown where a message refers to the task.
MAX_REFERENCE = 250


def references_of(messages: Iterable[Mapping[str, Any]], caller_id: int) -> list[str]:
    """Returns a line for each task that a caller's messages refer to (`referenceTaskIds`): its state and answer.

    Unknown tasks and tasks of other callers are left out. Without references no statement is made.
    """
    ids = []
    for task_id in (task_id for message in messages for task_id in message.get("referenceTaskIds", ())):
        try:
            ids.append(parse_task_id(task_id))
        except TaskNotFound:
            continue
    if not ids:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_REFERENCES, [ids, caller_id])
        rows = cursor.fetchall()
    lines = []
    for task_id, state, payload in rows:
        answer = one_line(message_text(json.loads(payload)), MAX_REFERENCE) if payload else ""
        lines.append(f"task {task_id} ({state}): {answer}".rstrip(": "))
    return lines

"""The services of a run: one attempt at a task, by the worker that claimed the task.

Every write of a run names its attempt number, which is the fencing number: a worker whose lease has passed and whose
task another worker has claimed changes no row.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from a2a_server import queries
from a2a_server.models import TaskState
from a2a_server.services.transitions import (
    FROM_STATES,
    status_message,
    task_enqueue,
    task_move,
    transition,
    transition_values,
)
from trust.models import Level
from volcanic.aio import wakeups
from volcanic.models import Notification
from volcanic.redaction import redact
from volcanic.runtime.base import Outcome
from volcanic.services import TaskTurn, task_record_values
from volcanic.text import clean_json, clean_text
from volcanic.turns.leases import lease_duration


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run: one attempt at a task, with the data that the run needs. Every write of the run names `attempt`."""

    task_id: uuid.UUID
    attempt: int
    session_id: int
    context_id: str
    message: dict[str, Any]
    metadata: dict[str, Any]
    accepted_output_modes: list[str]
    hops: int
    caller_id: int
    caller_name: str
    level: Level
    enabled: bool
    workspace_id: int
    workspace_slug: str
    notify_owner: bool
    # The ids of the granted skills, each with the grant's own level; None where the caller's level counts.
    grants: Mapping[str, Level | None]
    started_at: datetime
    # The session has turns from before this run.
    has_history: bool
    # The task has files that are not in the inbox yet.
    has_files: bool
    # The API keys that the task's messages came with.
    keys: list[int]
    # One of `keys` was revoked.
    key_revoked: bool
    # The task's review; None for a task that has no review.
    review_id: int | None
    # The digest of the request in the task's first message.
    request_digest: str
    # The number of messages in the task's history, the last one included.
    history_length: int
    # The id of the skill of the task's last run; "" for a plain request and for a task that has not run yet.
    last_skill: str
    # The message that began the task; None where `message` is that message.
    first_message: dict[str, Any] | None


def task_claim(*, task_id: uuid.UUID, worker: str) -> Run | None:
    """Claims a submitted task for this worker: submitted → working, under a lease. One statement.

    Returns the run; None when the task can't be claimed because it ended, was canceled, or is another worker's.
    """
    now = timezone.now()
    values = transition_values(
        task_id, TaskState.WORKING, now=now, claims=1, worker=worker, lease=now + lease_duration()
    )
    row = transition(values, queries.TASK_CLAIM)
    if row is None:
        return None
    return Run(
        task_id=row[0],
        attempt=row[1],
        session_id=row[2],
        context_id=row[3],
        message=json.loads(row[4]),
        metadata=json.loads(row[5]) if row[5] else {},
        accepted_output_modes=json.loads(row[6]),
        hops=row[7],
        caller_id=row[8],
        caller_name=row[9],
        level=Level(row[10]),
        enabled=row[11],
        workspace_id=row[12],
        workspace_slug=row[13],
        notify_owner=row[14],
        grants={slug: Level(level) if level else None for slug, level in json.loads(row[15]).items()},
        has_history=row[16],
        has_files=row[17],
        keys=row[18],
        key_revoked=row[19],
        request_digest=row[20],
        history_length=row[21],
        review_id=row[22],
        last_skill=row[23],
        first_message=json.loads(row[24]) if row[24] else None,
        started_at=now,
    )


@dataclass(frozen=True, kw_only=True)
class ArtifactUpdate:
    """An artifact in its present form, and the `chunk` that the event shows; without a chunk the event shows all."""

    artifact: dict[str, Any]
    chunk: dict[str, Any] | None = None
    append: bool = False
    last: bool = True

    def values(self) -> dict[str, Any]:
        """Returns the parameters of the statements that write the artifact."""
        return {
            "artifact_id": self.artifact["artifactId"],
            "payload": json.dumps(clean_json(self.artifact)),
            "chunk": json.dumps(clean_json(self.chunk or self.artifact)),
            "append": self.append,
            "last": self.last,
        }


NO_ARTIFACT = {"artifact_id": None, "payload": None, "chunk": None, "append": False, "last": False}


def artifact_write(*, run: Run, update: ArtifactUpdate) -> bool:
    """Stores an artifact and its event while the run goes on. One statement.

    Returns whether the run still holds its task; if not, nothing was written.
    """
    values = {"task": run.task_id, "attempt": run.attempt, "now": timezone.now(), **update.values()}
    with connection.cursor() as cursor:
        cursor.execute(queries.ARTIFACT_WRITE, values)
        done = cursor.fetchone() is not None
    if done:
        transaction.on_commit(lambda: wakeups.send(str(run.task_id), TaskState.WORKING.value))
    return done


def run_finish(
    *,
    run: Run,
    prompt: str,
    outcome: Outcome,
    text: str,
    update: ArtifactUpdate | None,
    report: str = "",
    report_kind: str = Notification.Kind.REPORT,
) -> bool:
    """Ends a run with the outcome of its turn: answer, state, transcript and report, in one statement.

    `text` is the status message (redacted), "" for no message. `update` is the last piece of the answer, None where
    all is written. `report` is the notification for the owner, "" for no notification. Returns whether the run still
    held its task; if not, nothing was written.
    """
    state = TaskState(outcome.state.value)
    assert TaskState.WORKING in FROM_STATES[state]
    now = timezone.now()
    turn = TaskTurn(
        prompt=prompt,
        messages=outcome.messages,
        pending=outcome.pending,
        state=outcome.state.value,
        started_at=run.started_at,
    )
    values = {
        "task": run.task_id,
        "attempt": run.attempt,
        "state": state.value,
        "from_state": TaskState.WORKING.value,
        "status_message": status_message(run.task_id, text) if text else None,
        **(update.values() if update else NO_ARTIFACT),
        **task_record_values(
            workspace_id=run.workspace_id,
            task=run.task_id,
            now=now,
            turn=turn,
            caller=run.caller_name,
            text=report,
            kind=report_kind,
        ),
    }
    return transition(values, queries.RUN_FINISH) is not None


def task_settle(*, run: Run, state: TaskState, text: str = "") -> bool:
    """Ends a run that needed no turn: working → `state`, with `text` as the status message (redacted).

    Returns whether the run still held its task; if not, nothing was written.
    """
    return task_move(run.task_id, state, only_from=[TaskState.WORKING], text=text, attempt=run.attempt) is not None


def run_note(
    *, run: Run, skill: str = "", repeatable: bool = False, pending_report: str = "", granted: str = ""
) -> bool:
    """Notes the purpose of a run before its turn begins.

    `skill` is the id of the skill asked for, "" for a plain request. `repeatable` says that another worker may run the
    task again should this one die. `pending_report` is the report that the owner gets should the run be ended from
    outside (redacted). `granted` is the id of the skill whose grant the run needs, "" where it needs no grant.
    Returns True when the run still held its task and the caller still had that grant; otherwise nothing was written.
    """
    values: dict[str, Any] = {
        "task": run.task_id,
        "attempt": run.attempt,
        "skill": skill,
        "repeatable": repeatable,
        "retries": int(repeatable),
        "pending_report": clean_text(redact(pending_report)),
        "caller": run.caller_id,
        "granted": granted,
    }
    with connection.cursor() as cursor:
        cursor.execute(queries.RUN_NOTE, values)
        return bool(cursor.rowcount)


def run_uses(*, run: Run, pending_report: str) -> bool:
    """Stores a run's pending report, which now names the tools and files used so far (redacted).

    The owner gets the pending report should the run be ended from outside. Returns whether the run still held its task;
    if not, nothing was written.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            queries.RUN_USES,
            {"task": run.task_id, "attempt": run.attempt, "pending_report": clean_text(redact(pending_report))},
        )
        return bool(cursor.rowcount)


def run_release(*, run: Run) -> bool:
    """Ends a run that only reads, so that another worker can claim the task: working → submitted.

    Returns whether the run still held its task; if not, nothing was written.
    """
    done = task_move(run.task_id, TaskState.SUBMITTED, only_from=[TaskState.WORKING], attempt=run.attempt) is not None
    if done:
        transaction.on_commit(lambda: task_enqueue(run.task_id))
    return done

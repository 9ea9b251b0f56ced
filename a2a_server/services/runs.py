"""The verbs of a run: one attempt at a task, by the worker that claimed it. All its writes name the attempt."""

import json
import uuid
from collections.abc import Collection, Mapping
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
from volcanic.turns.leases import RunKey, lease_duration


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run: one attempt at a task, and what it needs to know. All writes of the run name it."""

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
    # The granted skills, each with the level that counts for it where it is not the caller's.
    grants: Mapping[str, Level | None]
    started_at: datetime
    # Whether anything was said in the session before.
    has_history: bool
    # Whether files came for this run.
    has_files: bool
    # The keys that the task's messages came with, whether one of them was revoked, and the review that it has, if any.
    keys: list[int]
    key_revoked: bool
    review_id: int | None
    # Of what the task's first message asks for.
    request_digest: str
    # How many messages the task's history has, the last one included.
    history_length: int
    # The skill that the task ran on before, "" for none or where it did not run.
    last_skill: str
    # The message that began the task, where `message` is a later one.
    first_message: dict[str, Any] | None


def task_claim(*, task_id: uuid.UUID, worker: str) -> Run | None:
    """Takes a submitted task for this worker: submitted → working, under a lease. One statement.

    Returns None when it is not there to be taken: done already, canceled, or another worker's.
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
    """An artifact as it now is, and what an event shows of it: `chunk`, or all of it."""

    artifact: dict[str, Any]
    chunk: dict[str, Any] | None = None
    append: bool = False
    last: bool = True

    def values(self) -> dict[str, Any]:
        """Returns the parameters of the statements that write it."""
        return {
            "artifact_id": self.artifact["artifactId"],
            "payload": json.dumps(clean_json(self.artifact)),
            "chunk": json.dumps(clean_json(self.chunk or self.artifact)),
            "append": self.append,
            "last": self.last,
        }


NO_ARTIFACT = {"artifact_id": None, "payload": None, "chunk": None, "append": False, "last": False}


def artifact_write(*, run: Run, update: ArtifactUpdate) -> bool:
    """Stores an artifact while its run goes on, with the event that tells of it. One statement.

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
    """Ends a run with what its turn came to, all or nothing: answer, state, transcript, report. One statement.

    `text` is the status message (redacted), "" for none; `update` the last of the answer; `report` what the owner is
    told of it afterwards, "" for nothing. Returns whether the run still held its task; if not, nothing was written.
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
    """Notes what a run is for: the skill asked for ("" for a plain request), and whether it may be done again by
    another worker, should this one die.

    `pending_report` is what the owner is told should it be broken off, `granted` the skill whose grant it needs ("" for
    none).
    Returns whether the run still held its task, and the caller that grant.
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
    """Writes down what a run has used so far, in the words in which the owner is told of it should the run be broken
    off. Returns whether the run still held its task; if not, nothing was written."""
    with connection.cursor() as cursor:
        cursor.execute(
            queries.RUN_USES,
            {"task": run.task_id, "attempt": run.attempt, "pending_report": clean_text(redact(pending_report))},
        )
        return bool(cursor.rowcount)


def run_release(*, run: Run) -> bool:
    """Gives a run that only reads back, to be done by another worker: working → submitted. Returns whether the run
    still held its task."""
    done = task_move(run.task_id, TaskState.SUBMITTED, only_from=[TaskState.WORKING], attempt=run.attempt) is not None
    if done:
        transaction.on_commit(lambda: task_enqueue(run.task_id))
    return done


def leases_renew(runs: Collection[RunKey]) -> None:
    """Renews the leases of (task, attempt) runs, those that are still held."""
    with connection.cursor() as cursor:
        cursor.execute(queries.LEASES_RENEW, {**_arrays(runs), "lease": timezone.now() + lease_duration()})


def runs_lost(runs: Collection[RunKey]) -> set[RunKey]:
    """Returns those of the (task, attempt) runs that no longer hold their lease: canceled, expired, taken over."""
    with connection.cursor() as cursor:
        cursor.execute(queries.RUNS_LOST, _arrays(runs))
        return {(row[0], row[1]) for row in cursor.fetchall()}


def _arrays(runs: Collection[RunKey]) -> dict[str, Any]:
    return {"tasks": [run[0] for run in runs], "attempts": [run[1] for run in runs]}

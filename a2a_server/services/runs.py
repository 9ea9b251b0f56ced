"""The verbs of a run: one attempt at a task, by the worker that claimed it. All its writes name the attempt."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from a2a_server import queries
from a2a_server.models import TaskState
from a2a_server.services.transitions import FROM_STATES, status_message, task_enqueue, transition, transition_values
from trust.models import Level
from volcanic import wakeups
from volcanic.models import Notification
from volcanic.redaction import redact
from volcanic.runtime.base import Outcome
from volcanic.text import clean_json, clean_text


@dataclass(frozen=True, kw_only=True)
class Claim:
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


def task_claim(*, task_id: uuid.UUID, worker: str) -> Claim | None:
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
    return Claim(
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


def lease_duration() -> timedelta:
    """Returns how long a claimed task is its worker's without a sign of life."""
    return timedelta(seconds=settings.LEASE_SECONDS)


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


def artifact_write(*, claim: Claim, update: ArtifactUpdate) -> bool:
    """Stores an artifact while its run goes on, with the event that tells of it. One statement.

    Returns whether the run still holds its task; if not, nothing was written.
    """
    values = {"task": claim.task_id, "attempt": claim.attempt, "now": timezone.now(), **update.values()}
    with connection.cursor() as cursor:
        cursor.execute(queries.ARTIFACT_WRITE, values)
        done = cursor.fetchone() is not None
    if done:
        transaction.on_commit(lambda: wakeups.send(str(claim.task_id), TaskState.WORKING.value))
    return done


def run_finish(
    *,
    claim: Claim,
    origin: str,
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
    values = {
        "task": claim.task_id,
        "attempt": claim.attempt,
        "now": timezone.now(),
        "state": state.value,
        "from_state": TaskState.WORKING.value,
        **notice_values(claim.workspace_id, claim.caller_name, report, report_kind),
        "status_message": status_message(claim.task_id, text) if text else None,
        "origin": origin,
        "prompt": prompt,
        "messages": json.dumps(clean_json(outcome.messages)),
        "pending": None if outcome.pending is None else json.dumps(clean_json(outcome.pending)),
        "outcome": outcome.state.value,
        "started": claim.started_at,
        **(update.values() if update else NO_ARTIFACT),
    }
    assert TaskState.WORKING in FROM_STATES[state]
    return transition(values, queries.RUN_FINISH) is not None


def task_settle(*, claim: Claim, state: TaskState, text: str = "") -> bool:
    """Ends a run that needed no turn: working → `state`, with `text` as the status message (redacted).

    Returns whether the run still held its task; if not, nothing was written.
    """
    message = status_message(claim.task_id, text) if text else None
    values = transition_values(
        claim.task_id, state, only_from=[TaskState.WORKING], attempt=claim.attempt, status_message=message
    )
    return transition(values) is not None


def run_note(*, claim: Claim, skill: str = "", repeatable: bool = False, untold: str = "", granted: str = "") -> bool:
    """Notes what a run is for: the skill asked for ("" for a plain request), and whether it may be done again by
    another worker, should this one die.

    `untold` is what the owner is told should it be broken off; `granted` the skill whose grant it needs, "" for none.
    Returns whether the run still held its task, and the caller that grant.
    """
    values: dict[str, Any] = {
        "task": claim.task_id,
        "attempt": claim.attempt,
        "skill": skill,
        "repeatable": repeatable,
        "tried": int(repeatable),
        "untold": clean_text(redact(untold)),
        "caller": claim.caller_id,
        "granted": granted,
    }
    with connection.cursor() as cursor:
        cursor.execute(queries.RUN_NOTE, values)
        return bool(cursor.rowcount)


def run_uses(*, claim: Claim, untold: str) -> bool:
    """Writes down what a run has used so far, in the words in which the owner is told of it should the run be broken
    off. Returns whether the run still held its task; if not, nothing was written."""
    with connection.cursor() as cursor:
        cursor.execute(
            queries.RUN_USES, {"task": claim.task_id, "attempt": claim.attempt, "untold": clean_text(redact(untold))}
        )
        return bool(cursor.rowcount)


def run_release(*, claim: Claim) -> bool:
    """Gives a run that only reads back, to be done by another worker: working → submitted. Returns whether the run
    still held its task."""
    values = transition_values(claim.task_id, TaskState.SUBMITTED, only_from=[TaskState.WORKING], attempt=claim.attempt)
    done = transition(values) is not None
    if done:
        transaction.on_commit(lambda: task_enqueue(claim.task_id))
    return done


def notice_values(
    workspace_id: int, caller_name: str, text: str, kind: str = Notification.Kind.REPORT
) -> dict[str, Any]:
    """Returns the parameters of a line for the owner that goes with a change of a task; no `text`, no line."""
    return {
        "workspace": workspace_id,
        "caller_name": caller_name,
        "notice": clean_text(redact(text)) or None,
        "notice_kind": kind,
    }


def leases_renew(*, runs: Sequence[tuple[uuid.UUID, int]]) -> None:
    """Renews the leases of (task, attempt) runs, those that are still theirs."""
    with connection.cursor() as cursor:
        cursor.execute(
            queries.LEASES_RENEW,
            {
                "tasks": [run[0] for run in runs],
                "attempts": [run[1] for run in runs],
                "lease": timezone.now() + lease_duration(),
            },
        )


def runs_lost(*, runs: Sequence[tuple[uuid.UUID, int]]) -> set[tuple[uuid.UUID, int]]:
    """Returns those of the (task, attempt) runs that their worker holds no more: canceled, expired, taken over."""
    with connection.cursor() as cursor:
        cursor.execute(queries.RUNS_LOST, {"tasks": [run[0] for run in runs], "attempts": [run[1] for run in runs]})
        return {(row[0], row[1]) for row in cursor.fetchall()}

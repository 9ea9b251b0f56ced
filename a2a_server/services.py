"""The verbs of tasks. Nothing else writes a task's state.

    submitted → working → completed | failed | rejected | input_required | auth_required
    input_required → submitted (the caller's answer), and from any state that is not terminal → canceled

What follows a change (Celery's message, wake-ups) goes out after commit. Losing it loses no work: the sweep finds
submitted tasks that nobody claimed and runs whose lease has passed, and whoever waits looks by itself.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from a2a_server import queries, quotas, selectors
from a2a_server.errors import InvalidParams, NotCancelable, NotSupported
from a2a_server.files import IncomingFile, files_keep
from a2a_server.models import TERMINAL, TaskState
from a2a_server.push_configs import WantedPush, push_config_set
from a2a_server.selectors import TaskView
from trust.limits import Limits
from trust.models import Level
from volcanic import wakeups
from volcanic.celery import publish
from volcanic.redaction import redact
from volcanic.runtime.base import Outcome
from volcanic.text import clean_json, clean_text

SERVER_RESTARTED = "server restarted"
CONTEXT_BUSY = "context busy, retry when the current task ends"

# From which states each state may be reached. Terminal states lead nowhere.
_FROM: Mapping[TaskState, Sequence[TaskState]] = {
    TaskState.WORKING: [TaskState.SUBMITTED],
    TaskState.INPUT_REQUIRED: [TaskState.WORKING],
    TaskState.AUTH_REQUIRED: [TaskState.WORKING],
    TaskState.COMPLETED: [TaskState.WORKING],
    TaskState.REJECTED: [TaskState.WORKING],
    TaskState.FAILED: [TaskState.WORKING],
    TaskState.CANCELED: [state for state in TaskState if state not in TERMINAL],
}


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A message that a caller sent, checked and in our own words.

    `message` is its wire form, `digest` of the whole of it. `task_id` names the task to make, or when `continues` the
    one to go on with; `context_id` may be "".
    """

    caller_id: int
    caller_name: str
    workspace_id: int
    message: dict[str, Any]
    digest: str
    task_id: uuid.UUID
    continues: bool = False
    context_id: str = ""
    metadata: dict[str, Any] | None = None
    accepted_output_modes: Sequence[str] = ()
    hops: int = 0
    files: Sequence[IncomingFile] = ()
    push: WantedPush | None = None
    limits: Limits = field(default_factory=Limits.of)


class Submitted(NamedTuple):
    """The task that a message led to. `fresh` when this call has it run; otherwise nothing is about to happen."""

    task_id: uuid.UUID
    fresh: bool


def task_submit(*, submission: Submission) -> Submitted:
    """Makes a task of a message, or continues the one it names, and has it run. One statement, unless near a quota.

    The same message again within DUPLICATE_WINDOW_SECONDS returns the first one's task and does nothing else.
    Over MAX_HOPS the task is made and has failed. Raises TaskNotFound, InvalidParams (another context), NotSupported
    (the task does not wait for an answer; the context is busy), QuotaExceeded.
    """
    check = quotas.Check(
        caller_id=submission.caller_id,
        limits=submission.limits,
        continues=submission.continues,
        files=submission.files,
    )
    if not check.always_near and (submitted := _submit(submission, check)) is not None:
        return submitted
    submitted = _submit(submission, check.exactly())
    assert submitted is not None
    return submitted


def _submit(submission: Submission, check: quotas.Check) -> Submitted | None:
    """Does it, or returns None if that has to be done again, exactly: the caller is near a quota."""
    now = timezone.now()
    over = submission.hops > settings.MAX_HOPS
    task_id = submission.task_id
    context_id = submission.context_id or ("" if submission.continues else str(uuid.uuid4()))
    message = {**submission.message, "taskId": str(task_id), "contextId": context_id}
    state = TaskState.FAILED if over else TaskState.SUBMITTED
    statement, counts = check.statement()
    values = {
        "now": now,
        "window_start": now - timedelta(seconds=settings.DUPLICATE_WINDOW_SECONDS),
        "task": task_id,
        "caller": submission.caller_id,
        "workspace": submission.workspace_id,
        "scope": f"a2a-{submission.caller_id}_{context_id}",
        "title": f"{submission.caller_name} / {context_id}",
        "context": context_id,
        "digest": submission.digest,
        "state": state.value,
        "status_message": _status_message(task_id, _hops_text(submission.hops), context_id) if over else None,
        "history": json.dumps([message]),
        "metadata": None if submission.metadata is None else json.dumps(submission.metadata),
        "modes": json.dumps(list(submission.accepted_output_modes)),
        "hops": submission.hops,
        **counts,
    }
    # What comes along needs statements of its own; a plain message is one statement, and needs no more.
    along = submission.files or submission.push is not None
    with transaction.atomic() if along or check.exact else nullcontext():
        if check.exact:
            check.lock()
        row = _execute_unless_busy(statement, values)
        used = quotas.Used(*row[2:])
        check.note(used, values)
        if row[0] is None:
            return _not_submitted(submission, values, check, used)
        if submission.files and not over:
            files_keep(task_id=task_id, files=submission.files)
        if submission.push is not None:
            push_config_set(task_id=task_id, caller_id=submission.caller_id, wanted=submission.push)
    if not over:
        transaction.on_commit(lambda: task_enqueue(task_id))
    if submission.continues:  # nobody can wait for a new task yet
        transaction.on_commit(lambda: _tell(task_id, state.value, row[1]))
    return Submitted(task_id, fresh=not over)


def _execute_unless_busy(query: str, values: dict[str, Any]) -> Sequence[Any]:
    try:
        with connection.cursor() as cursor:
            cursor.execute(query, values)
            row: Sequence[Any] = cursor.fetchone()
            return row
    except IntegrityError as error:
        if "task_one_running_per_session" in str(error):
            raise NotSupported(CONTEXT_BUSY) from None
        raise


def _not_submitted(
    submission: Submission, values: dict[str, Any], check: quotas.Check, used: quotas.Used
) -> Submitted | None:
    """Returns the task of the same message sent before, or None to try again exactly; else raises what is wrong."""
    if (known := _received_before(values)) is not None:
        return Submitted(known, fresh=False)
    if submission.continues:
        _refuse_continuation(submission, unless_waiting=not used.fits)
    if not check.exact:
        return None
    raise check.refusal(used)


def _received_before(values: dict[str, Any]) -> uuid.UUID | None:
    with connection.cursor() as cursor:
        cursor.execute(queries.RECEIVED_TASK, values)
        row = cursor.fetchone()
    return row[0] if row else None


def _refuse_continuation(submission: Submission, *, unless_waiting: bool) -> None:
    """Says why a continuation changed nothing. `unless_waiting`: returns if it was not for the task itself."""
    task = task_read(task_id=submission.task_id, caller_id=submission.caller_id)
    if submission.context_id and submission.context_id != task.context_id:
        raise InvalidParams("contextId is not the context of the task that taskId names.")
    if task.state in TERMINAL:
        raise NotSupported(f"The task has ended ({task.state.value}) and takes no more messages. Send without taskId.")
    if unless_waiting and task.state is TaskState.INPUT_REQUIRED:
        return
    raise NotSupported(f"The task is {task.state.value} and waits for no message.")


def _hops_text(hops: int) -> str:
    return f"Too many hops: the request was passed on {hops} times, and {settings.MAX_HOPS} are allowed."


def _status_message(task_id: uuid.UUID, text: str, context_id: str = "") -> str:
    """Returns a message of ours as JSON. The statement that stores it fills in the context where the task knows it."""
    message = {
        "messageId": str(uuid.uuid4()),
        "contextId": context_id,
        "taskId": str(task_id),
        "role": "ROLE_AGENT",
        "parts": [{"text": clean_text(redact(text))}],
    }
    return json.dumps(message)


def task_enqueue(task_id: uuid.UUID) -> None:
    """Sends the Celery message that has a worker look at a submitted task."""
    from a2a_server.tasks import run_turn  # tasks.py imports this module's users

    publish(run_turn, str(task_id))


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
    granted: frozenset[str]
    started_at: datetime
    # Whether anything was said in the session before.
    has_history: bool
    # Whether files came for this run.
    has_files: bool


def _transition_values(task_id: uuid.UUID, state: TaskState, **extra: Any) -> dict[str, Any]:
    values = {
        "task": task_id,
        "state": state.value,
        "from_states": [allowed.value for allowed in _FROM[state]],
        "now": timezone.now(),
        "status_message": None,
        "claims": 0,
        "attempt": None,
        "caller": None,
        "lease": None,
        "lease_before": None,
        "worker": "",
    }
    return values | extra


def _transition(values: dict[str, Any], query: str = queries.TASK_TRANSITION_ONLY) -> Sequence[Any] | None:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        row: Sequence[Any] | None = cursor.fetchone()
    if row is not None:
        configs: list[int] = row[-1]
        transaction.on_commit(lambda: _tell(values["task"], values["state"], configs))
    return row


def _tell(task_id: uuid.UUID, state: str, configs: list[int]) -> None:
    """Tells whoever waits for a task that it changed, and has its webhooks served."""
    wakeups.send(str(task_id), state)
    for config_id in configs:
        push_enqueue(config_id)


def push_enqueue(config_id: int) -> None:
    """Sends the Celery message that has a worker deliver what is due for a webhook."""
    from a2a_server.tasks import deliver  # tasks.py imports this module's users

    publish(deliver, config_id)


def task_claim(*, task_id: uuid.UUID, worker: str) -> Claim | None:
    """Takes a submitted task for this worker: submitted → working, under a lease. One statement.

    Returns None when it is not there to be taken: done already, canceled, or another worker's.
    """
    now = timezone.now()
    values = _transition_values(
        task_id, TaskState.WORKING, now=now, claims=1, worker=worker, lease=now + lease_duration()
    )
    row = _transition(values, queries.TASK_CLAIM)
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
        granted=frozenset(row[15]),
        has_history=row[16],
        has_files=row[17],
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


_NO_ARTIFACT = {"artifact_id": None, "payload": None, "chunk": None, "append": False, "last": False}


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
    *, claim: Claim, origin: str, prompt: str, outcome: Outcome, text: str, update: ArtifactUpdate | None
) -> bool:
    """Ends a run with what its turn came to, all or nothing: answer, state, transcript. One statement.

    `text` is the status message (redacted), "" for none; `update` the last of the answer. Returns whether the run
    still held its task; if not, nothing was written.
    """
    state = TaskState(outcome.state.value)
    values = {
        "task": claim.task_id,
        "attempt": claim.attempt,
        "now": timezone.now(),
        "state": state.value,
        "status_message": _status_message(claim.task_id, text) if text else None,
        "origin": origin,
        "prompt": prompt,
        "messages": json.dumps(clean_json(outcome.messages)),
        "pending": None if outcome.pending is None else json.dumps(clean_json(outcome.pending)),
        "outcome": outcome.state.value,
        "started": claim.started_at,
        **(update.values() if update else _NO_ARTIFACT),
    }
    assert TaskState.WORKING in _FROM[state]
    return _transition(values, queries.RUN_FINISH) is not None


def task_settle(*, claim: Claim, state: TaskState, text: str = "") -> bool:
    """Ends a run that needed no turn: working → `state`, with `text` as the status message (redacted).

    Returns whether the run still held its task; if not, nothing was written.
    """
    message = _status_message(claim.task_id, text) if text else None
    values = _transition_values(claim.task_id, state, attempt=claim.attempt, status_message=message)
    return _transition(values) is not None


def task_cancel(*, task_id: uuid.UUID, caller_id: int) -> TaskView:
    """Cancels a caller's task, whatever it is doing: its worker notices within a second and writes nothing more.

    Raises TaskNotFound, or NotCancelable when the task has ended.
    """
    if _transition(_transition_values(task_id, TaskState.CANCELED, caller=caller_id)) is None:
        task = task_read(task_id=task_id, caller_id=caller_id)
        raise NotCancelable(f"The task has ended already ({task.state.value}).")
    return selectors.task_get(task_id=task_id, caller_id=caller_id)


def task_expire(*, task_id: uuid.UUID) -> bool:
    """Fails a task whose worker is gone: working → failed, if its lease has passed. Returns whether this call did."""
    now = timezone.now()
    values = _transition_values(task_id, TaskState.FAILED, now=now, lease_before=now)
    values["status_message"] = _status_message(task_id, SERVER_RESTARTED)
    return _transition(values) is not None


def task_read(*, task_id: uuid.UUID, caller_id: int) -> TaskView:
    """Returns a caller's task. One whose worker is gone has failed by the time it is read.

    One statement, unless it had to fail the task. Raises TaskNotFound.
    """
    task = selectors.task_get(task_id=task_id, caller_id=caller_id)
    if task.lease_passed:
        task_expire(task_id=task_id)
        task = selectors.task_get(task_id=task_id, caller_id=caller_id)
    return task


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


def tasks_sweep(*, unclaimed_after: timedelta = timedelta(seconds=5), limit: int = 500) -> tuple[int, int]:
    """Fails runs whose worker is gone and sends again the messages of submitted tasks that nobody claimed.

    Returns how many of each.
    """
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(queries.RUNS_EXPIRED, {"now": now, "limit": limit})
        expired = [row[0] for row in cursor.fetchall()]
        cursor.execute(queries.UNCLAIMED_TAKE, {"now": now, "before": now - unclaimed_after, "limit": limit})
        unclaimed = [row[0] for row in cursor.fetchall()]
    failed = sum(task_expire(task_id=task_id) for task_id in expired)
    for task_id in unclaimed:
        task_enqueue(task_id)
    return failed, len(unclaimed)

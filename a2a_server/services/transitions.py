"""Transitions: the states of a task, the statement that changes them, and the messages sent after commit.

    submitted → working → completed | failed | rejected | input_required | auth_required
    input_required → submitted (the caller's answer)
    auth_required → submitted (the owner approved) | completed (they replied) | input_required (they ask) | rejected
    input_required → rejected (a question of the owner's was not answered in time)
    working → submitted (a run that only reads, whose worker is gone), and any that is not terminal → canceled

Celery messages and wake-ups go out after commit. Losing one loses no work: a sweep finds submitted tasks that no
worker claimed, runs whose lease has passed, and webhooks with due deliveries. A request that waits for a task also
polls it.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from a2a_server import queries, reports
from a2a_server.models import TERMINAL, Artifact, TaskState
from a2a_server.push.deliveries import push_deliveries
from trust.models import Caller
from volcanic.a2a_json import RESPONSE, message_text
from volcanic.aio import wakeups
from volcanic.celery import publish
from volcanic.events import wake_key
from volcanic.models import Notification
from volcanic.origins import task_origin
from volcanic.redaction import redact
from volcanic.services import notification_create
from volcanic.text import clean_text

# For each state the states from which it may be reached. No state may be reached from a terminal one.
FROM_STATES: Mapping[TaskState, Sequence[TaskState]] = {
    TaskState.SUBMITTED: [TaskState.AUTH_REQUIRED, TaskState.WORKING],
    TaskState.WORKING: [TaskState.SUBMITTED],
    TaskState.INPUT_REQUIRED: [TaskState.WORKING, TaskState.AUTH_REQUIRED],
    TaskState.AUTH_REQUIRED: [TaskState.WORKING],
    TaskState.COMPLETED: [TaskState.WORKING, TaskState.AUTH_REQUIRED],
    TaskState.REJECTED: [TaskState.WORKING, TaskState.AUTH_REQUIRED, TaskState.INPUT_REQUIRED],
    TaskState.FAILED: [TaskState.WORKING],
    TaskState.CANCELED: [state for state in TaskState if state not in TERMINAL],
}


def status_message(task_id: uuid.UUID, text: str, context_id: str = "") -> str:
    """Returns a status message from the assistant with `text` (redacted), as JSON.

    Without `context_id`, the statement that stores the message fills in the task's context.
    """
    message = {
        "messageId": str(uuid.uuid4()),
        "contextId": context_id,
        "taskId": str(task_id),
        "role": "ROLE_AGENT",
        "parts": [{"text": clean_text(redact(text))}],
    }
    return json.dumps(message)


def transition_values(
    task_id: uuid.UUID, state: TaskState, *, only_from: Sequence[TaskState] | None = None, **extra: Any
) -> dict[str, Any]:
    """Returns the parameters of a change to `state` for `queries.TASK_TRANSITION`.

    The task may come from every state in FROM_STATES, or from the states in `only_from` alone. `extra` replaces
    further parameters of the statement, for example `attempt`, `caller` or `lease`.
    """
    allowed = FROM_STATES[state] if only_from is None else only_from
    assert set(allowed) <= set(FROM_STATES[state])
    values = {
        "task": task_id,
        "state": state.value,
        "from_states": [one.value for one in allowed],
        "now": timezone.now(),
        "status_message": None,
        "claims": 0,
        "attempt": None,
        "caller": None,
        "lease": None,
        "lease_before": None,
        "max_retries": None,
        "worker": "",
    }
    return values | extra


def transition(values: dict[str, Any], query: str = queries.TASK_TRANSITION_ONLY) -> Sequence[Any] | None:
    """Changes a task by one conditional statement, and sends the wake-ups and deliveries after commit.

    Returns the statement's row. Returns None when nothing was changed: the task does not exist, its state does not
    allow the change, or another attempt holds it.
    """
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        row: Sequence[Any] | None = cursor.fetchone()
    if row is not None:
        configs, workspace_id = row[-2], row[-1]
        transaction.on_commit(lambda: tell(values["task"], values["state"], configs, workspace_id))
    return row


def task_move(
    task_id: uuid.UUID, state: TaskState, *, only_from: Sequence[TaskState] | None = None, text: str = "", **extra: Any
) -> TaskState | None:
    """Moves a task to `state`, with `text` as its status message (redacted). Returns the state before.

    Returns None when nothing was changed: the task does not exist, its state does not allow the change, or another
    attempt holds it. When the task had a pending report and ends as failed, canceled or rejected, the owner gets the
    report in the same transaction. `only_from` and `extra` as in `transition_values`.
    """
    message = status_message(task_id, text) if text else None
    values = transition_values(task_id, state, only_from=only_from, status_message=message, **extra)
    if state not in _ENDED_FROM_OUTSIDE:
        row = transition(values)
        return None if row is None else TaskState(row[1])
    with transaction.atomic():
        row = transition(values)
        if row is not None and row[4]:
            _report_broken_off(task_id, row, state, text)
    return None if row is None else TaskState(row[1])


_ENDED_FROM_OUTSIDE = (TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED)


def _report_broken_off(task_id: uuid.UUID, row: Sequence[Any], state: TaskState, reason: str) -> None:
    """Reports a run that was ended from outside to the owner: the request, the tools and files used, the answer so far.

    `row` is the row of `queries.TASK_TRANSITION_ONLY`.
    """
    _, _, session_id, caller_id, pending_report, _, workspace_id = row
    payload = Artifact.objects.filter(task_id=task_id, artifact_id=RESPONSE).values_list("payload", flat=True).first()
    answered = message_text(payload) if payload else ""
    notification_create(
        workspace_id=workspace_id,
        session_id=session_id,
        task=task_id,
        origin=task_origin(task_id),
        caller=Caller.objects.values_list("name", flat=True).get(pk=caller_id),
        kind=Notification.Kind.REPORT,
        text=redact(reports.broken_off(pending_report, answered, state.label, reason)),
    )


def tell(task_id: uuid.UUID, state: str, configs: list[int], workspace_id: int) -> None:
    """Wakes the owner's pages and the requests and streams that wait for a task. Enqueues the webhooks `configs`."""
    wakeups.send(str(task_id), state)
    wakeups.send_soon(wake_key(workspace_id))
    for config_id in configs:
        push_deliveries.enqueue(config_id)


def task_enqueue(task_id: uuid.UUID) -> None:
    """Sends the Celery message on which a worker claims a submitted task."""
    publish("a2a_server.tasks.run_turn", str(task_id))

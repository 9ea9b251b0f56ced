"""How a task changes: every change of state goes through here, and what follows it after commit.

    submitted → working → completed | failed | rejected | input_required | auth_required
    input_required → submitted (the caller's answer)
    auth_required → submitted (the owner approved) | completed (they replied) | input_required (they ask) | rejected
    input_required → rejected (a question of the owner's was not answered in time)
    working → submitted (a run that only reads, whose worker is gone), and any that is not terminal → canceled

What follows a change (Celery's messages, wake-ups) goes out after commit. Losing it loses no work: a sweep finds
submitted tasks that nobody claimed, runs whose lease has passed and webhooks that are owed something, and whoever
waits looks by itself.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from a2a_server import queries
from a2a_server.models import TERMINAL, TaskState
from volcanic import wakeups
from volcanic.celery import publish
from volcanic.redaction import redact
from volcanic.text import clean_text

SERVER_RESTARTED = "server restarted"

# From which states each state may be reached. Terminal states lead nowhere.
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
    """Returns a message of ours as JSON. The statement that stores it fills in the context where the task knows it."""
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
    """Returns the parameters of a change to `state`, from whatever leads there or `only_from` some of that; `extra`
    says what else is particular about it."""
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
        "attempts": None,
        "worker": "",
    }
    return values | extra


def transition(values: dict[str, Any], query: str = queries.TASK_TRANSITION_ONLY) -> Sequence[Any] | None:
    """Makes a change, by one conditional statement, and tells of it after commit. Returns its row, None if it was
    not to be made: the task is not there, in no state that leads there, or another attempt's."""
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        row: Sequence[Any] | None = cursor.fetchone()
    if row is not None:
        configs: list[int] = row[-1]
        transaction.on_commit(lambda: tell(values["task"], values["state"], configs))
    return row


def tell(task_id: uuid.UUID, state: str, configs: list[int]) -> None:
    """Tells whoever waits for a task that it changed, and has its webhooks served."""
    wakeups.send(str(task_id), state)
    for config_id in configs:
        push_enqueue(config_id)


def task_enqueue(task_id: uuid.UUID) -> None:
    """Sends the Celery message that has a worker look at a submitted task."""
    from a2a_server.tasks import run_turn  # tasks.py imports this module's users

    publish(run_turn, str(task_id))


def push_enqueue(config_id: int) -> None:
    """Has what is due for a webhook delivered: by this process if it is a worker, else by way of a Celery message."""
    from a2a_server import tasks  # tasks.py imports this module's users

    if tasks.in_worker:
        tasks.deliver_here(config_id)
    else:
        publish(tasks.deliver, config_id)

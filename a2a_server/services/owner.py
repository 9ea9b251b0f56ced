"""The services that apply the owner's decision to a task that waits for it. Each is one conditional statement.

A statement that finds the task in another state changes nothing, so two decisions that race can't both take effect.
"""

import uuid

from django.db import IntegrityError, transaction
from django.utils import timezone

from a2a_server import queries
from a2a_server.models import RUNNING, TaskState
from a2a_server.services.runs import ArtifactUpdate
from a2a_server.services.transitions import task_enqueue, task_move, transition
from volcanic.services import TaskTurn, task_record_values

STOPPED = "The owner took the grant for this back."
_WAITING = TaskState.AUTH_REQUIRED


def task_resume(*, task_id: uuid.UUID) -> bool | None:
    """Has an approved task run: auth_required → submitted. Returns whether this call changed the task.

    Returns None when another task runs in the same context just now, so that the caller has to try again later.
    """
    try:
        with transaction.atomic():
            done = task_move(task_id, TaskState.SUBMITTED, only_from=[_WAITING]) is not None
    except IntegrityError as error:
        if "task_one_running_per_session" in str(error):
            return None
        raise
    if done:
        transaction.on_commit(lambda: task_enqueue(task_id))
    return done


def task_answer(*, task_id: uuid.UUID, request: str, reply: str, artifact: dict[str, object]) -> bool:
    """Answers a task with the owner's own words: auth_required → completed. Returns whether this call changed the task.

    Stores the artifact, and in the same transaction the request and the reply in the transcript.
    """
    now = timezone.now()
    words = [{"role": "user", "text": request}, {"role": "assistant", "text": reply}]
    turn = TaskTurn(prompt=request, messages=words, state=TaskState.COMPLETED.value, started_at=now)
    values = {
        "task": task_id,
        "attempt": None,
        "from_state": _WAITING.value,
        "state": TaskState.COMPLETED.value,
        "status_message": None,
        **ArtifactUpdate(artifact=artifact).values(),
        **task_record_values(workspace_id=0, task=task_id, now=now, turn=turn),
    }
    return transition(values, queries.RUN_FINISH) is not None


def task_ask(*, task_id: uuid.UUID, question: str) -> bool:
    """Asks the caller the owner's question: auth_required → input_required. Returns whether this call changed the task.

    The question becomes the status message (redacted).
    """
    return task_move(task_id, TaskState.INPUT_REQUIRED, only_from=[_WAITING], text=question) is not None


def task_reject(*, task_id: uuid.UUID, text: str) -> bool:
    """Ends a task that the owner declined. Returns whether this call changed the task.

    auth_required → rejected, and after a question of the owner's input_required → rejected. `text` becomes the status
    message (redacted).
    """
    waiting = [_WAITING, TaskState.INPUT_REQUIRED]
    return task_move(task_id, TaskState.REJECTED, only_from=waiting, text=text) is not None


def task_stop(*, task_id: uuid.UUID) -> bool:
    """Ends a run whose grant the owner took back: submitted or working → canceled.

    The run's worker notices within a second. Returns whether this call changed the task.
    """
    return task_move(task_id, TaskState.CANCELED, only_from=RUNNING, text=STOPPED) is not None

"""The verbs by which the owner's decision reaches a task that waits for it. Each is one conditional statement."""

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
    """Has an approved task run: auth_required → submitted. Returns whether this call did it; None when another task
    runs in its context just now, so that it has to be tried again."""
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
    """Answers a task with the owner's own words: auth_required → completed, with the artifact, and both sides' words in
    the transcript. Returns whether this call did it."""
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
    """Asks the caller something for the owner: auth_required → input_required. Returns whether this call did it."""
    return task_move(task_id, TaskState.INPUT_REQUIRED, only_from=[_WAITING], text=question) is not None


def task_reject(*, task_id: uuid.UUID, text: str) -> bool:
    """Ends a task that the owner does not have done: auth_required, or input_required after a question of theirs →
    rejected. Returns whether this call did it."""
    waiting = [_WAITING, TaskState.INPUT_REQUIRED]
    return task_move(task_id, TaskState.REJECTED, only_from=waiting, text=text) is not None


def task_stop(*, task_id: uuid.UUID) -> bool:
    """Ends a run whose grant the owner took back: submitted or working → canceled; its worker notices within a second.

    Returns whether this call did it.
    """
    return task_move(task_id, TaskState.CANCELED, only_from=RUNNING, text=STOPPED) is not None

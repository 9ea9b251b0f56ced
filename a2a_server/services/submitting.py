"""Submission: the service that makes a task from a caller's message, or continues one.

Lock order: a decision of the owner's locks the review first and then the task, and so does this module.
"""

import json
import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from a2a_server import builtin, queries, quotas
from a2a_server.errors import InvalidParams, NotSupported
from a2a_server.files import file_line, files_keep
from a2a_server.models import TERMINAL, TaskState
from a2a_server.push.configs import push_config_set
from a2a_server.selectors import TaskView, references_of
from a2a_server.services.ending import task_read
from a2a_server.services.runs import ArtifactUpdate
from a2a_server.services.transitions import status_message, task_enqueue, tell, transition
from a2a_server.submission import Submission, Submitted
from trust.policy import too_many_hops
from trust.services import review_add
from volcanic.a2a_json import message_text
from volcanic.events import wake
from volcanic.origins import session_scope
from volcanic.services import task_record_values

ADDED = "Your message was added to the request. The owner has not decided yet."
CONTEXT_BUSY = "context busy, retry when the current task ends"


def task_submit(*, submission: Submission) -> Submitted:
    """Makes a task from a message, or continues the task that the message names, and has the task run.

    One statement for a plain message. The same message again within DUPLICATE_WINDOW_SECONDS returns the first
    message's task and changes nothing. The same request again while it waits for the owner returns the waiting task. A
    message for a task that waits for the owner is added to the review's thread. A request for a built-in skill that
    policy allows is answered at once. Over MAX_HOPS the task is made in the state failed.

    Raises TaskNotFound, InvalidParams (another context, or nothing to pass on), NotSupported (the task does not wait
    for an answer; the context is busy; too many unread messages), ContentTypeNotSupported (files for a built-in skill)
    and QuotaExceeded.
    """
    answer = builtin.answer_for(submission) if submission.skill and not submission.continues else None
    over = submission.hops > settings.MAX_HOPS
    values = _values(submission) | quotas.quota_values(submission)
    statement = queries.TASK_CONTINUE if submission.continues else queries.TASK_CREATE
    if answer is not None:
        statement, values = queries.TASK_ANSWER, values | _answer_values(submission, answer, values["now"])
    # Files and a webhook need further statements, so a transaction. A plain message is one statement.
    along = submission.files or submission.push is not None
    with transaction.atomic() if along else nullcontext():
        row = _execute_unless_busy(statement, values)
        used = quotas.Used(*row[1:4])
        if row[0] is None:
            return _not_submitted(submission, values, used)
        if submission.files and not over:
            quotas.bytes_reserve(submission)
            files_keep(task_id=submission.task_id, files=submission.files)
        if submission.push is not None:
            push_config_set(task_id=submission.task_id, caller_id=submission.caller_id, wanted=submission.push)
    runs = not over and answer is None
    if runs:
        transaction.on_commit(lambda: task_enqueue(submission.task_id))
    if submission.continues:
        transaction.on_commit(lambda: tell(submission.task_id, values["state"], row[-2], row[-1]))
    elif not runs:
        wake(submission.workspace_id)
    # Nobody waits for a new task yet, and the owner's pages hear of it when a worker takes it, a moment later.
    return Submitted(submission.task_id, fresh=runs, view=None if answer is None else _answered(values))


def _answered(values: dict[str, Any]) -> TaskView:
    """Returns a task that a built-in skill answered, built from the statement's parameters: no read is needed."""
    return TaskView(
        id=values["task"],
        context_id=values["context"],
        state=TaskState.COMPLETED,
        status_at=values["now"],
        status_message=None,
        history=values["history"],
        metadata=values["metadata"],
        seq=values["first_seq"],
        lease_expires_at=None,
        artifacts=f"[{values['payload']}]",
    )


def _values(submission: Submission) -> dict[str, Any]:
    """Returns the parameters of the statement that makes or continues a task."""
    now = timezone.now()
    over = submission.hops > settings.MAX_HOPS
    task_id = submission.task_id
    context_id = submission.context_id or ("" if submission.continues else str(uuid.uuid4()))
    message = {**submission.message, "taskId": str(task_id), "contextId": context_id}
    state = TaskState.FAILED if over else TaskState.SUBMITTED
    return {
        "now": now,
        "window_start": now - timedelta(seconds=settings.DUPLICATE_WINDOW_SECONDS),
        "task": task_id,
        "caller": submission.caller_id,
        "workspace": submission.workspace_id,
        "scope": session_scope(submission.caller_id, context_id),
        "title": f"{submission.caller_name} / {context_id}",
        "context": context_id,
        "digest": submission.digest,
        "state": state.value,
        "status_message": status_message(task_id, too_many_hops(submission.hops, settings.MAX_HOPS), context_id)
        if over
        else None,
        "history": json.dumps([message]),
        "metadata": None if submission.metadata is None else json.dumps(submission.metadata),
        "modes": json.dumps(list(submission.accepted_output_modes)),
        "hops": submission.hops,
        "keys": [] if submission.key_id is None else [submission.key_id],
        "request_digest": submission.request_digest,
        "continues": submission.continues,
        "first_seq": 1,
    }


def _answer_values(submission: Submission, answer: builtin.Answer, now: datetime) -> dict[str, Any]:
    return {
        "state": TaskState.COMPLETED.value,
        "first_seq": 2,
        **ArtifactUpdate(artifact=answer.artifact).values(),
        **task_record_values(
            workspace_id=submission.workspace_id,
            task=submission.task_id,
            now=now,
            caller=submission.caller_name,
            text=answer.notice,
            kind=answer.notice_kind,
            note=answer.note,
        ),
    }


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


def _not_submitted(submission: Submission, values: dict[str, Any], used: quotas.Used) -> Submitted:
    """Returns the task of the same message or request sent before; otherwise raises the reason for the refusal.

    A continuation of a task that waits for the owner is added to the thread here. Raises as `task_submit` does.
    """
    if (found := _received_before(values)) is not None:
        known, joined = found
        if joined and submission.push is not None:
            push_config_set(task_id=known, caller_id=submission.caller_id, wanted=submission.push)
        return Submitted(known, fresh=False)
    if submission.continues:
        if _add_to_thread(submission, values) or _received_before(values) is not None:
            return Submitted(submission.task_id, fresh=False)
        _refuse_continuation(submission, unless_waiting=not used.fits)
    if used.fits:
        raise NotSupported("The same request waited for the owner until just now. Send it again.")
    raise quotas.refusal(submission, used)


def _add_to_thread(submission: Submission, values: dict[str, Any]) -> bool:
    """Adds a message to the thread of a task that waits for the owner. Returns whether the task waits.

    Raises NotSupported for a thread that gets too long for the owner to read and for a message over MAX_HOPS, and
    QuotaExceeded for files that don't fit.
    """
    message = {**submission.message, "taskId": str(submission.task_id)}
    values = {**values, "status_message": status_message(submission.task_id, ADDED), "message": json.dumps(message)}
    with transaction.atomic():
        # Locks the review first and then the task, the order in which a decision locks them.
        files = [file_line(file.filename, file.declared_type, file.url) for file in submission.files]
        try:
            added = review_add(
                task=submission.task_id,
                caller_id=submission.caller_id,
                message=message,
                text=message_text(message),
                key_id=submission.key_id,
                files=files,
                references=references_of([message], submission.caller_id),
            )
        except ValidationError as error:
            raise NotSupported(" ".join(error.messages)) from None
        if not added or transition(values, queries.TASK_ADD_MESSAGE) is None:
            transaction.set_rollback(True)
            return False
        if submission.hops > settings.MAX_HOPS:
            raise NotSupported(too_many_hops(submission.hops, settings.MAX_HOPS))
        if submission.files:
            quotas.bytes_reserve(submission)
            files_keep(task_id=submission.task_id, files=submission.files)
        if submission.push is not None:
            push_config_set(task_id=submission.task_id, caller_id=submission.caller_id, wanted=submission.push)
    return True


def _received_before(values: dict[str, Any]) -> tuple[uuid.UUID, bool] | None:
    """Returns the task that a message belongs to already, or None.

    The second value is True when the same request waits for the owner, False when the same message came before.
    """
    with connection.cursor() as cursor:
        cursor.execute(queries.RECEIVED_TASK, values)
        row = cursor.fetchone()
    return (row[0], row[1]) if row else None


def _refuse_continuation(submission: Submission, *, unless_waiting: bool) -> None:
    """Raises the reason why a continuation changed nothing: InvalidParams, NotSupported or TaskNotFound.

    With `unless_waiting` the function returns when the task waits for an answer, since the quota was the reason then.
    """
    task = task_read(task_id=submission.task_id, caller_id=submission.caller_id)
    if submission.context_id and submission.context_id != task.context_id:
        raise InvalidParams("contextId is not the context of the task that taskId names.")
    if task.state in TERMINAL:
        raise NotSupported(f"The task has ended ({task.state.value}) and takes no more messages. Send without taskId.")
    if unless_waiting and task.state is TaskState.INPUT_REQUIRED:
        return
    if task.state is TaskState.AUTH_REQUIRED:
        raise NotSupported("The owner has decided, and the task goes on soon. Wait for what becomes of it.")
    raise NotSupported(f"The task is {task.state.value} and waits for no message.")

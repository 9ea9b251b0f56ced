"""Unary operations: the A2A methods on tasks for all bindings. Each takes an SDK request and returns JSON text.

The JSON text is put together from stored JSON. So all bindings show the same, and no large task is parsed to be shown.
"""

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from a2a.types import a2a_pb2
from a2a.utils.proto_utils import validate_proto_required_fields
from django.conf import settings
from google.protobuf.json_format import ParseDict, ParseError

from a2a_server import wire
from a2a_server.errors import InvalidParams
from a2a_server.models import TaskState
from a2a_server.selectors import TaskView, parse_task_id, tasks_list
from a2a_server.services import task_cancel, task_read, task_submit
from a2a_server.submission import Submission
from a2a_server.wire import V1
from trust.selectors import AuthenticatedCaller
from volcanic import outbound
from volcanic.acting import acting_as
from volcanic.aio import wakeups
from volcanic.aio.db import run_db

logger = logging.getLogger(__name__)

# A waiting request reads its task at least this often, in case a wake-up was lost.
_LOOK_SECONDS = 1.0


async def check_webhook(url: str) -> None:
    """Raises InvalidParams for a webhook URL that may not be called.

    A host name that does not resolve just now is no error, since it may resolve at the time of a delivery.
    """
    try:
        await outbound.check_url(url)
    except outbound.OutboundError as error:
        if error.permanent:
            raise InvalidParams(f"The webhook's url is refused: {error}.") from error


async def check_submission(submission: Submission) -> None:
    """Makes the checks of a submission that need the network: its webhook's URL. Raises InvalidParams."""
    if submission.push is not None:
        await check_webhook(submission.push.url)


async def send_message(request: a2a_pb2.SendMessageRequest, caller: AuthenticatedCaller, version: str = V1) -> str:
    """SendMessage (3.1.1): returns the task when it has settled, or at once with `returnImmediately`."""
    length = wire.history_length_from(request.configuration)
    submission = wire.submission_from(request, caller, version)
    await check_submission(submission)
    if request.configuration.return_immediately:
        submitted = await run_db(task_submit, submission=submission)
        task = submitted.view
        if task is None:
            task = await run_db(task_read, task_id=submitted.task_id, caller_id=caller.id)
    else:
        task = await _submit_and_wait(submission)
    return task.to_json(history_length=length)


async def get_task(request: a2a_pb2.GetTaskRequest, caller: AuthenticatedCaller) -> str:
    """GetTask (3.1.3): returns a task of this caller."""
    length = wire.history_length_from(request)
    task = await run_db(task_read, task_id=parse_task_id(request.id), caller_id=caller.id)
    return task.to_json(history_length=length)


async def list_tasks(request: a2a_pb2.ListTasksRequest, caller: AuthenticatedCaller) -> str:
    """ListTasks (3.1.4): returns a page of this caller's tasks, the newest status first, as the whole response."""
    wanted, length = wire.filter_from(request), wire.history_length_from(request)
    page = await run_db(tasks_list, caller_id=caller.id, wanted=wanted)
    tasks = ",".join(task.to_json(history_length=length) for task in page.tasks)
    return (
        f'{{"tasks":[{tasks}],"nextPageToken":{json.dumps(page.next_page_token)},'
        f'"pageSize":{wanted.page_size},"totalSize":{page.total_size}}}'
    )


async def cancel_task(request: a2a_pb2.CancelTaskRequest, caller: AuthenticatedCaller) -> str:
    """CancelTask (3.1.5): cancels a task of this caller and returns it."""
    task = await run_db(_cancel, parse_task_id(request.id), caller)
    return task.to_json()


def _cancel(task_id: uuid.UUID, caller: AuthenticatedCaller) -> TaskView:
    with acting_as(f"caller {caller.name}", str(task_id)):
        return task_cancel(task_id=task_id, caller_id=caller.id)


Operation = Callable[[Any, AuthenticatedCaller], Awaitable[str]]

# For each method its request type, its function, and the format string that makes the JSON-RPC result from the
# function's text.
_OPERATIONS: dict[str, tuple[Any, Operation, str]] = {
    "SendMessage": (a2a_pb2.SendMessageRequest, send_message, '{{"task":{}}}'),
    "GetTask": (a2a_pb2.GetTaskRequest, get_task, "{}"),
    "ListTasks": (a2a_pb2.ListTasksRequest, list_tasks, "{}"),
    "CancelTask": (a2a_pb2.CancelTaskRequest, cancel_task, "{}"),
}


def handles(method: str) -> bool:
    """Returns whether `call` serves this method. The SDK's routes serve all other methods."""
    return method in _OPERATIONS


async def call(method: str, params: dict[str, Any], caller: AuthenticatedCaller) -> str:
    """Executes a 1.0 JSON-RPC call and returns its result as JSON text. Every error is raised as an A2AError."""
    kind, operation, shape = _OPERATIONS[method]
    try:
        try:
            request = ParseDict(params, kind(), ignore_unknown_fields=True)
        except ParseError as error:
            raise InvalidParams(f"Invalid parameters: {error}") from error
        validate_proto_required_fields(request)
        return shape.format(await operation(request, caller))
    except Exception as error:
        raise wire.translated(error) from error


async def _submit_and_wait(submission: Submission) -> TaskView:
    """Submits a message and returns its task when the task has ended or waits for somebody.

    Registers for wake-ups before it submits, so that no wake-up is missed. Returns the task as it is after
    BLOCKING_MAX_SECONDS at the latest.
    """
    give_up = time.monotonic() + settings.BLOCKING_MAX_SECONDS
    with wakeups.waiting(str(submission.task_id)) as waiter:
        submitted = await run_db(task_submit, submission=submission)
        if submitted.view is not None:
            return submitted.view
        while True:
            # The task is not read right after its submission, nor on a wake-up that says that it works: it has not
            # settled then.
            woken = submitted.fresh and await waiter.wait(_LOOK_SECONDS)
            if not (woken and waiter.hint == TaskState.WORKING):
                task = await run_db(task_read, task_id=submitted.task_id, caller_id=submission.caller_id)
                if task.settled or time.monotonic() >= give_up:
                    return task
            if not submitted.fresh:  # a repeated message may belong to another task, so no wake-up comes
                await asyncio.sleep(_LOOK_SECONDS)

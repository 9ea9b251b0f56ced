"""To and from the SDK's types: the requests that come in, the tasks and events that go out, the errors."""

import hashlib
import json
import logging
import re
import uuid
from datetime import UTC, datetime
from typing import Any

from a2a.types import a2a_pb2
from a2a.utils import errors as sdk_errors
from google.protobuf.json_format import MessageToDict, ParseDict

from a2a_server.errors import (
    ContentTypeNotSupported,
    InvalidParams,
    NotCancelable,
    NotSupported,
    PushNotSupported,
    RequestError,
    TaskNotFound,
)
from a2a_server.models import TaskState
from a2a_server.selectors import TaskFilter, parse_task_id
from a2a_server.services import Submission
from trust.selectors import AuthenticatedCaller
from volcanic.text import clean_json

logger = logging.getLogger(__name__)

_CONTEXT_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_HOPS = "volcanic.hops"
MAX_PAGE_SIZE = 100
INPUT_MODES = ["text/plain", "application/json"]
OUTPUT_MODES = ["text/plain"]

_SDK_ERRORS: dict[type[RequestError], type[sdk_errors.A2AError]] = {
    InvalidParams: sdk_errors.InvalidParamsError,
    TaskNotFound: sdk_errors.TaskNotFoundError,
    NotSupported: sdk_errors.UnsupportedOperationError,
    NotCancelable: sdk_errors.TaskNotCancelableError,
    ContentTypeNotSupported: sdk_errors.ContentTypeNotSupportedError,
    PushNotSupported: sdk_errors.PushNotificationNotSupportedError,
}


def to_sdk_error(error: RequestError) -> sdk_errors.A2AError:
    """Returns the A2A error (5.4) of one of our own."""
    return _SDK_ERRORS[type(error)](str(error))


def translated(error: Exception) -> sdk_errors.A2AError:
    """Returns the A2A error of an exception. What nobody foresaw is logged, and only said to have happened."""
    if isinstance(error, sdk_errors.A2AError):
        return error
    if isinstance(error, RequestError):
        return to_sdk_error(error)
    logger.error("request failed", exc_info=error)
    return sdk_errors.InternalError("Internal error")


def submission_from(request: a2a_pb2.SendMessageRequest, caller: AuthenticatedCaller) -> Submission:
    """Returns what a SendMessage request asks for, checked.

    Raises InvalidParams, ContentTypeNotSupported or PushNotSupported.
    """
    message, configuration = request.message, request.configuration
    if configuration.HasField("task_push_notification_config"):
        raise PushNotSupported
    if message.role != a2a_pb2.ROLE_USER:
        raise InvalidParams("message.role must be ROLE_USER.")
    for index, part in enumerate(message.parts):
        _check_part(index, part)
    if message.context_id and not _CONTEXT_ID.fullmatch(message.context_id):
        raise InvalidParams("message.contextId must match [A-Za-z0-9_-]{1,100}.")
    metadata = _plain_json(request.metadata) if request.HasField("metadata") else None
    wire_message = _plain_json(message)
    return Submission(
        caller_id=caller.id,
        caller_name=caller.name,
        workspace_id=caller.workspace_id,
        message=wire_message,
        digest=hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest(),
        task_id=parse_task_id(message.task_id) if message.task_id else uuid.uuid4(),
        continues=bool(message.task_id),
        context_id=message.context_id,
        metadata=metadata,
        accepted_output_modes=list(configuration.accepted_output_modes),
        hops=_hops(metadata or {}, wire_message.get("metadata", {})),
    )


def _plain_json(message: Any) -> dict[str, Any]:
    """Returns a protobuf message as JSON that can be stored, numbers as they were written: 7 and not 7.0."""
    plain: dict[str, Any] = json.loads(json.dumps(clean_json(MessageToDict(message))), parse_float=_number)
    return plain


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _check_part(index: int, part: a2a_pb2.Part) -> None:
    kind = part.WhichOneof("content")
    if kind is None:
        raise InvalidParams(f"message.parts[{index}] has no content: set one of text, data, raw, url.")
    media_type = part.media_type.partition(";")[0].strip().lower()
    fits = {"text": not media_type or media_type.startswith("text/") or media_type == "application/json"}
    fits["data"] = not media_type or media_type == "application/json" or media_type.endswith("+json")
    if not fits.get(kind, False):
        raise ContentTypeNotSupported(
            f"message.parts[{index}] ({media_type or kind}) is not accepted: send {' or '.join(INPUT_MODES)}."
        )


def _hops(request_metadata: dict[str, Any], message_metadata: dict[str, Any]) -> int:
    """How many agents passed this request on: the request's word, then the message's, else none."""
    hops = request_metadata.get(_HOPS, message_metadata.get(_HOPS, 0))
    if isinstance(hops, bool) or not isinstance(hops, int | float) or hops < 0 or hops != int(hops) or hops > 10**6:
        raise InvalidParams(f'metadata["{_HOPS}"] must be a whole number from 0 on.')
    return int(hops)


def history_length_from(holder: Any) -> int | None:
    """Returns the historyLength of a request or configuration: None when unset (3.2.4). Raises InvalidParams."""
    if not holder.HasField("history_length"):
        return None
    if holder.history_length < 0:
        raise InvalidParams("historyLength must be 0 or more.")
    return int(holder.history_length)


def filter_from(request: a2a_pb2.ListTasksRequest) -> TaskFilter:
    """Returns what a ListTasks request asks for (3.1.4). Raises InvalidParams."""
    page_size = request.page_size if request.HasField("page_size") else 50
    if not 1 <= page_size <= MAX_PAGE_SIZE:
        raise InvalidParams(f"pageSize must be from 1 to {MAX_PAGE_SIZE}.")
    return TaskFilter(
        context_id=request.context_id,
        state=task_state_from(request.status),
        changed_since=_moment(request),
        include_artifacts=request.include_artifacts,
        page_size=page_size,
        page_token=request.page_token,
    )


def _moment(request: a2a_pb2.ListTasksRequest) -> datetime | None:
    if not request.HasField("status_timestamp_after"):
        return None
    try:
        moment: datetime = request.status_timestamp_after.ToDatetime(tzinfo=UTC)
        return moment
    except (ValueError, OverflowError):
        raise InvalidParams("statusTimestampAfter is no moment that can be.") from None


def task_state_from(state: int) -> TaskState | None:
    """Returns our state for the wire's, None for unspecified. Raises InvalidParams for a number that is none."""
    if state == a2a_pb2.TASK_STATE_UNSPECIFIED:
        return None
    try:
        return TaskState(a2a_pb2.TaskState.Name(state).removeprefix("TASK_STATE_").lower())
    except ValueError:
        raise InvalidParams(f"status names no task state: {state}.") from None


def to_task(task: str) -> a2a_pb2.Task:
    """Returns the SDK's Task of a task's JSON."""
    parsed: a2a_pb2.Task = ParseDict(json.loads(task), a2a_pb2.Task())
    return parsed


def to_task_page(page: str) -> a2a_pb2.ListTasksResponse:
    """Returns the SDK's answer to ListTasks of its JSON."""
    parsed: a2a_pb2.ListTasksResponse = ParseDict(json.loads(page), a2a_pb2.ListTasksResponse())
    return parsed


def to_event(payload: str) -> a2a_pb2.TaskStatusUpdateEvent | a2a_pb2.TaskArtifactUpdateEvent:
    """Returns the SDK's event of an event of ours."""
    response = ParseDict(json.loads(payload), a2a_pb2.StreamResponse())
    return getattr(response, response.WhichOneof("payload"))  # type: ignore[no-any-return]

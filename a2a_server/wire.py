"""Conversion from and to the SDK's types: incoming requests, outgoing tasks and events, and errors."""

import hashlib
import json
import logging
import re
import uuid
from datetime import UTC, datetime
from typing import Any

from a2a.server.jsonrpc_models import JSONRPCError
from a2a.server.request_handlers.response_helpers import EXCEPTION_MAP
from a2a.types import a2a_pb2
from a2a.utils import errors as sdk_errors
from django.conf import settings
from google.protobuf.json_format import MessageToDict, ParseDict

from a2a_server.errors import (
    ContentTypeNotSupported,
    InvalidParams,
    NotCancelable,
    NotSupported,
    PushNotSupported,
    QuotaExceeded,
    RequestError,
    TaskNotFound,
)
from a2a_server.files import IncomingFile, incoming_file, incoming_url
from a2a_server.models import PushConfig, TaskState
from a2a_server.selectors import TaskFilter, parse_task_id
from a2a_server.submission import Submission, WantedPush
from trust.digests import request_digest
from trust.selectors import AuthenticatedCaller
from volcanic.text import clean_json, clean_text

logger = logging.getLogger(__name__)

# The supported versions of the protocol, as the header A2A-Version names them.
V1, V03 = "1.0", "0.3"

_CONTEXT_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_CONFIG_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")
_SCHEME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,50}")
_HEADER_VALUE = re.compile(r"[\x21-\x7e]?(?:[\x20-\x7e]*[\x21-\x7e])?")
_HOPS, _SKILL = "volcanic.hops", "skill"
MAX_PAGE_SIZE = 100
INPUT_MODES = ["text/plain", "application/json", "*/*"]
OUTPUT_MODES = ["text/plain", "*/*"]


class QuotaExceededError(sdk_errors.A2AError):
    """A quota is exceeded. The specification has no error for this case.

    JSON-RPC gets -32000, a code for errors that a server defines. REST gets RESOURCE_EXHAUSTED of google.rpc.
    """


sdk_errors.JSON_RPC_ERROR_CODE_MAP[QuotaExceededError] = -32000
sdk_errors.A2A_ERROR_MAPPING[QuotaExceededError] = sdk_errors.ErrorMapping(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED")
sdk_errors.A2A_ERROR_REASONS[QuotaExceededError] = "QUOTA_EXCEEDED"
sdk_errors.A2A_REASON_TO_ERROR["QUOTA_EXCEEDED"] = QuotaExceededError
EXCEPTION_MAP[QuotaExceededError] = JSONRPCError

_SDK_ERRORS: dict[type[RequestError], type[sdk_errors.A2AError]] = {
    InvalidParams: sdk_errors.InvalidParamsError,
    TaskNotFound: sdk_errors.TaskNotFoundError,
    NotSupported: sdk_errors.UnsupportedOperationError,
    NotCancelable: sdk_errors.TaskNotCancelableError,
    ContentTypeNotSupported: sdk_errors.ContentTypeNotSupportedError,
    PushNotSupported: sdk_errors.PushNotificationNotSupportedError,
}


def to_sdk_error(error: RequestError) -> sdk_errors.A2AError:
    """Returns the A2A error (specification 5.4) for an error of `a2a_server.errors`."""
    if isinstance(error, QuotaExceeded):
        # google.rpc.ErrorInfo.metadata is a map of strings.
        data = {"quota": error.quota, "limit": str(error.limit), "used": str(error.used)}
        return QuotaExceededError(str(error), data)
    return _SDK_ERRORS[type(error)](str(error))


def translated(error: Exception) -> sdk_errors.A2AError:
    """Returns the A2A error for an exception. An unexpected exception is logged, and the caller gets InternalError."""
    if isinstance(error, sdk_errors.A2AError):
        return error
    if isinstance(error, RequestError):
        return to_sdk_error(error)
    logger.error("request failed", exc_info=error)
    return sdk_errors.InternalError("Internal error")


def submission_from(request: a2a_pb2.SendMessageRequest, caller: AuthenticatedCaller, version: str = V1) -> Submission:
    """Returns the checked submission in a SendMessage request of a caller.

    `version` is the protocol version in which a webhook of the request gets its deliveries. Raises InvalidParams,
    TaskNotFound (a task id that can't exist), ContentTypeNotSupported or PushNotSupported.
    """
    message, configuration = request.message, request.configuration
    if message.role != a2a_pb2.ROLE_USER:
        raise InvalidParams("message.role must be ROLE_USER.")
    files = [_file_of(index, part) for index, part in enumerate(message.parts) if _is_file(index, part)]
    if message.context_id and not _CONTEXT_ID.fullmatch(message.context_id):
        raise InvalidParams("message.contextId must match [A-Za-z0-9_-]{1,100}.")
    push = None
    if configuration.HasField("task_push_notification_config"):
        push = push_from(configuration.task_push_notification_config, version)
    metadata = _plain_json(request.metadata) if request.HasField("metadata") else None
    digest = hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()
    wire_message = _plain_json(_without_bytes(message) if files else message)
    skill = (metadata or {}).get(_SKILL) or wire_message.get("metadata", {}).get(_SKILL)
    return Submission(
        caller_id=caller.id,
        caller_name=caller.name,
        workspace_id=caller.workspace_id,
        message=wire_message,
        digest=digest,
        task_id=parse_task_id(message.task_id) if message.task_id else uuid.uuid4(),
        continues=bool(message.task_id),
        context_id=message.context_id,
        metadata=metadata,
        accepted_output_modes=list(configuration.accepted_output_modes),
        hops=_hops(metadata or {}, wire_message.get("metadata", {})),
        files=files,
        push=push,
        limits=caller.limits,
        stored_tasks=caller.stored_tasks,
        key_id=caller.key_id,
        request_digest=request_digest(wire_message, metadata, message.context_id),
        skill=skill,
    )


def _without_bytes(message: a2a_pb2.Message) -> a2a_pb2.Message:
    """Returns a message for the history: each file's bytes are replaced by the URN of their digest.

    With the bytes, every read of the task's history would send all files back.
    """
    kept = a2a_pb2.Message()
    kept.CopyFrom(message)
    for part in kept.parts:
        if part.WhichOneof("content") == "raw":
            part.url = f"urn:sha256:{hashlib.sha256(part.raw).hexdigest()}"
        elif part.WhichOneof("content") == "url" and part.url[:5].lower() == "data:":
            part.url = f"urn:sha256:{hashlib.sha256(part.url.encode()).hexdigest()}"
    return kept


def push_from(config: a2a_pb2.TaskPushNotificationConfig, version: str) -> WantedPush:
    """Returns the webhook that a config asks for. Raises InvalidParams or PushNotSupported.

    All members are checked except the address of the URL, which needs the network.
    """
    if not settings.PUSH_ENABLED:
        raise PushNotSupported
    if not config.url:
        raise InvalidParams("The push notification config has no url.")
    if config.id and not _CONFIG_ID.fullmatch(config.id):
        raise InvalidParams("The push notification config's id must match [A-Za-z0-9._:-]{1,100}.")
    scheme, credentials = config.authentication.scheme, config.authentication.credentials
    if scheme and not _SCHEME.fullmatch(scheme):
        raise InvalidParams("authentication.scheme is no HTTP authentication scheme.")
    for name, value in (("token", config.token), ("authentication.credentials", credentials)):
        if not _HEADER_VALUE.fullmatch(value):
            raise InvalidParams(f"{name} can't be sent in a header.")
    return WantedPush(
        config_id=config.id,
        url=config.url,
        token=config.token or None,
        auth_scheme=scheme,
        auth_credentials=credentials or None,
        version=version,
    )


def to_push_config(config: PushConfig) -> a2a_pb2.TaskPushNotificationConfig:
    """Returns the SDK's config of a webhook as its caller sees it: without token and credentials."""
    shown = a2a_pb2.TaskPushNotificationConfig(id=config.config_id, task_id=str(config.task_id), url=config.url)
    if config.auth_scheme:
        shown.authentication.scheme = config.auth_scheme
    return shown


def _plain_json(message: Any) -> dict[str, Any]:
    """Returns a protobuf message as JSON that can be stored, with whole numbers as integers: 7, not 7.0."""
    plain: dict[str, Any] = json.loads(json.dumps(clean_json(MessageToDict(message))), parse_float=_number)
    return plain


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _is_file(index: int, part: a2a_pb2.Part) -> bool:
    """Returns whether a part is a file.

    Raises InvalidParams for a part without content, and ContentTypeNotSupported for text or data of a wrong media type.
    """
    kind = part.WhichOneof("content")
    if kind is None:
        raise InvalidParams(f"message.parts[{index}] has no content: set one of text, data, raw, url.")
    if kind in ("raw", "url"):
        return True
    media_type = part.media_type.partition(";")[0].strip().lower()
    fits = media_type in ("", "application/json") or media_type.endswith("+json")
    if not (fits or (kind == "text" and media_type.startswith("text/"))):
        raise ContentTypeNotSupported(
            f"message.parts[{index}] is {kind}, which can't be {media_type}: send text/plain or application/json, or a "
            "file (raw or url)."
        )
    return False


def _file_of(index: int, part: a2a_pb2.Part) -> IncomingFile:
    if part.WhichOneof("content") == "raw":
        return incoming_file(
            position=index, filename=clean_text(part.filename), declared_type=part.media_type, content=part.raw
        )
    return incoming_url(position=index, filename=clean_text(part.filename), declared_type=part.media_type, url=part.url)


def _hops(request_metadata: dict[str, Any], message_metadata: dict[str, Any]) -> int:
    """Returns the number of agents that passed a request on: the request's metadata, else the message's, else 0.

    Raises InvalidParams for a value that is no whole number from 0 to 1,000,000.
    """
    hops = request_metadata.get(_HOPS, message_metadata.get(_HOPS, 0))
    if isinstance(hops, bool) or not isinstance(hops, int | float) or hops < 0 or hops != int(hops) or hops > 10**6:
        raise InvalidParams(f'metadata["{_HOPS}"] must be a whole number from 0 on.')
    return int(hops)


def history_length_from(holder: Any) -> int | None:
    """Returns the historyLength of a request or configuration, None when unset (specification 3.2.4).

    Raises InvalidParams for a negative number.
    """
    if not holder.HasField("history_length"):
        return None
    if holder.history_length < 0:
        raise InvalidParams("historyLength must be 0 or more.")
    return int(holder.history_length)


def filter_from(request: a2a_pb2.ListTasksRequest) -> TaskFilter:
    """Returns the checked filter in a ListTasks request (specification 3.1.4). Raises InvalidParams."""
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
    """Returns the TaskState for the SDK's number, None for unspecified. Raises InvalidParams for an unknown number."""
    if state == a2a_pb2.TASK_STATE_UNSPECIFIED:
        return None
    try:
        return TaskState(a2a_pb2.TaskState.Name(state).removeprefix("TASK_STATE_").lower())
    except ValueError:
        raise InvalidParams(f"status names no task state: {state}.") from None


def to_task(task: str) -> a2a_pb2.Task:
    """Returns the SDK's Task from a task's JSON text."""
    parsed: a2a_pb2.Task = ParseDict(json.loads(task), a2a_pb2.Task())
    return parsed


def to_task_page(page: str) -> a2a_pb2.ListTasksResponse:
    """Returns the SDK's ListTasks response from its JSON text."""
    parsed: a2a_pb2.ListTasksResponse = ParseDict(json.loads(page), a2a_pb2.ListTasksResponse())
    return parsed


def to_event(payload: str) -> a2a_pb2.TaskStatusUpdateEvent | a2a_pb2.TaskArtifactUpdateEvent:
    """Returns the SDK's event from the JSON text of a stored event's payload."""
    response = ParseDict(json.loads(payload), a2a_pb2.StreamResponse())
    return getattr(response, response.WhichOneof("payload"))  # type: ignore[no-any-return]


def task_to_03(task: dict[str, Any]) -> str:
    """Returns a task's 0.3 wire form as JSON text, from its 1.0 form. Deliveries to 0.3 webhooks send the text."""
    # Imported here, since the types of 0.3 take a third of a second to import and few processes need them.
    from a2a.compat.v0_3 import conversions

    compat = conversions.to_compat_task(ParseDict(task, a2a_pb2.Task()))
    text: str = compat.model_dump_json(by_alias=True, exclude_none=True)
    return text

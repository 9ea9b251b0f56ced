"""Parsing of request bodies before the SDK: JSON, the JSON-RPC request object, and the protocol version.

The SDK answers some malformed requests with internal errors, and serves a call without a version header as 0.3 only.
This module raises the right error for each malformed request and settles the version. Requests passed on to the SDK
carry the header A2A-Version.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

from a2a_server.http.responses import (
    Fault,
    invalid_params,
    invalid_request,
    method_not_found,
    parse_error,
    version_not_supported,
)
from a2a_server.wire import V03, V1
from volcanic.text import clean_json

METHODS_1_0 = frozenset(
    {
        "SendMessage",
        "SendStreamingMessage",
        "GetTask",
        "ListTasks",
        "CancelTask",
        "SubscribeToTask",
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
        "GetExtendedAgentCard",
    }
)
METHODS_0_3 = frozenset(
    {
        "message/send",
        "message/stream",
        "tasks/get",
        "tasks/cancel",
        "tasks/resubscribe",
        "tasks/pushNotificationConfig/set",
        "tasks/pushNotificationConfig/get",
        "tasks/pushNotificationConfig/list",
        "tasks/pushNotificationConfig/delete",
        "agent/getAuthenticatedExtendedCard",
    }
)
_STATES = "UNSPECIFIED SUBMITTED WORKING COMPLETED FAILED CANCELED INPUT_REQUIRED REJECTED AUTH_REQUIRED"
TASK_STATES = frozenset(f"TASK_STATE_{name}" for name in _STATES.split(" "))


class FaultError(Exception):
    """A request that is answered with `fault`, under the JSON-RPC id `request_id`."""

    def __init__(self, fault: Fault, request_id: Any = None) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.request_id = request_id


@dataclass(frozen=True)
class Call:
    """A well-formed JSON-RPC request. `request` is the whole request object."""

    id: Any
    method: str
    params: dict[str, Any]
    version: str
    # The whole request object.
    request: dict[str, Any]


def parse_json(body: bytes) -> Any:
    """Returns the JSON value of a body, without characters that can't be stored. Raises FaultError (-32700)."""
    try:
        return clean_json(json.loads(body, parse_constant=_refuse_constant, parse_float=_parse_float))
    except (ValueError, RecursionError):  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise FaultError(parse_error()) from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _parse_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("number out of range")
    return value


def open_jsonrpc(body: bytes, version_header: str) -> Call:
    """Returns the call in a JSON-RPC body. Raises FaultError with the code for the fault (specification 9.3, 9.5)."""
    value = parse_json(body)
    if not isinstance(value, dict):
        raise FaultError(invalid_request("A request is one JSON object; batches are not supported."))
    request_id = value.get("id")
    if isinstance(request_id, bool) or not isinstance(request_id, str | int | float | None):
        raise FaultError(invalid_request("id must be a string, a number or null."))
    if value.get("jsonrpc") != "2.0":
        raise FaultError(invalid_request('jsonrpc must be "2.0".'), request_id)
    method = value.get("method")
    if not isinstance(method, str):
        raise FaultError(invalid_request("method must be a string."), request_id)
    params = value.get("params")
    if params is None:
        params = value["params"] = {}
    if not isinstance(params, dict):
        raise FaultError(invalid_params("params must be an object."), request_id)
    try:
        version = _version_of_method(method, parse_version(version_header))
        if method == "ListTasks":
            check_state(params.get("status"))
    except FaultError as error:
        raise FaultError(error.fault, request_id) from None
    if isinstance(request_id, float):
        raise FaultError(invalid_request("id must be a string, a whole number or null."), None)
    return Call(request_id, method, params, version, value)


def parse_version(header: str) -> str:
    """Returns the protocol version in the value of A2A-Version: "1.0", "0.3", or "" for an empty value.

    Patch numbers are ignored (specification 3.6). Raises FaultError (-32009) for any other version.
    """
    header = header.strip()
    if not header:
        return ""
    version = ".".join(header.split(".")[:2])
    if version not in (V1, V03):
        raise FaultError(version_not_supported(f"A2A version {header[:20]!r} is not supported: use 1.0 or 0.3."))
    return version


def _version_of_method(method: str, version: str) -> str:
    """Returns the version of a call: the header's `version`, or without a header the version that has the method.

    Raises FaultError for an unknown method (-32601), and for a method of the other version (-32601 or -32009).
    """
    if method in METHODS_1_0:
        if version == V03:
            raise FaultError(version_not_supported(f"{method} is a method of A2A 1.0, but A2A-Version says 0.3."))
        return V1
    if method in METHODS_0_3:
        if version == V1:
            raise FaultError(method_not_found(f"Method not found: {method} is a method of A2A 0.3."))
        return V03
    raise FaultError(method_not_found("Method not found"))


def version_of_rest(path: str, body: Any, version_header: str) -> str:
    """Returns the version of a REST request: the header's, or without a header the version that the body's shape shows.

    0.3 puts a message's parts under `content`, 1.0 under `parts`. `/card` exists in 0.3 only. All other requests
    without a body are served as 1.0, since a 0.3 client without the header uses the 0.3 interface's own path. Raises
    FaultError (-32009) for an unsupported version.
    """
    version = parse_version(version_header)
    if version:
        return version
    if path == "/card":
        return V03
    message = body.get("message", body.get("request")) if isinstance(body, dict) else None
    if isinstance(message, dict) and "content" in message and "parts" not in message:
        return V03
    return V1


def check_state(state: Any) -> None:
    """Raises FaultError (-32602) for an unknown task state. The SDK would read an unknown state as "any state"."""
    if isinstance(state, str) and state and state not in TASK_STATES and not state.isdigit():
        raise FaultError(invalid_params(f"status names no task state: {state[:50]!r}."))

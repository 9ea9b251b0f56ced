"""HTTP responses that are written without the SDK, in the shape of JSON-RPC (9.5) or REST (11.6).

The numbers in brackets are sections of the A2A specification.
"""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from starlette.responses import Response

from trust.identity.schemes import security_schemes

ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
DOMAIN = "a2a-protocol.org"


@dataclass(frozen=True)
class Fault:
    """A fault in a request: HTTP status and google.rpc code for REST, code for JSON-RPC, reason and message."""

    status: int
    rpc_status: str
    code: int
    reason: str
    message: str
    # The fault concerns HTTP itself, so a JSON-RPC response keeps `status`. All other faults get HTTP 200 there.
    http: bool = False
    # The seconds after which the client may try again, 0 where the time is not known.
    retry_after: int = 0


def parse_error(message: str = "Invalid JSON payload") -> Fault:
    """Returns the fault of a body that is no JSON."""
    return Fault(400, "INVALID_ARGUMENT", -32700, "INVALID_JSON", message)


def invalid_request(message: str) -> Fault:
    """Returns the fault of JSON that is no JSON-RPC request."""
    return Fault(400, "INVALID_ARGUMENT", -32600, "INVALID_REQUEST", message)


def invalid_params(message: str) -> Fault:
    """Returns the fault of parameters with a wrong shape."""
    return Fault(400, "INVALID_ARGUMENT", -32602, "INVALID_PARAMS", message)


def method_not_found(message: str) -> Fault:
    """Returns the fault of an unknown method or path."""
    return Fault(404, "NOT_FOUND", -32601, "METHOD_NOT_FOUND", message)


def version_not_supported(message: str) -> Fault:
    """Returns the fault of an A2A-Version that is not served here (3.6.2)."""
    return Fault(400, "FAILED_PRECONDITION", -32009, "VERSION_NOT_SUPPORTED", message)


UNAUTHENTICATED = Fault(
    401,
    "UNAUTHENTICATED",
    -32000,
    "UNAUTHENTICATED",
    "Authentication required: send the key in the header X-API-Key, or as Authorization: Bearer.",
    http=True,
)
UNAVAILABLE = Fault(503, "UNAVAILABLE", -32603, "UNAVAILABLE", "Temporarily unavailable, try again.", http=True)


def too_large(limit: int) -> Fault:
    """Returns the fault of a body over `limit` bytes."""
    return Fault(413, "INVALID_ARGUMENT", -32600, "PAYLOAD_TOO_LARGE", f"The body is over {limit} bytes.", http=True)


def rate_limited(message: str, retry_after: int) -> Fault:
    """Returns the fault of too many requests. `retry_after` is in seconds."""
    text = f"{message} Try again in {retry_after} s."
    return Fault(429, "RESOURCE_EXHAUSTED", -32000, "RATE_LIMITED", text, http=True, retry_after=retry_after)


NOT_JSON = Fault(
    415,
    "INVALID_ARGUMENT",
    -32005,
    "MEDIA_TYPE_NOT_SUPPORTED",
    "Send Content-Type: application/json or application/a2a+json.",
    http=True,
)
METHOD_NOT_ALLOWED = Fault(
    405, "UNIMPLEMENTED", -32600, "METHOD_NOT_ALLOWED", "This path does not take this HTTP method.", http=True
)


def fault_response(
    fault: Fault, *, rest: bool, request_id: Any = None, headers: dict[str, str] | None = None
) -> Response:
    """Returns the response to a faulty request: in the shape of REST with `rest`, else in the shape of JSON-RPC."""
    if fault is UNAUTHENTICATED:
        headers = {**(headers or {}), "WWW-Authenticate": _challenge()}
    details: list[dict[str, Any]] = [{"@type": ERROR_INFO, "reason": fault.reason, "domain": DOMAIN, "metadata": {}}]
    if fault.retry_after:
        headers = {**(headers or {}), "Retry-After": str(fault.retry_after)}
        details.append({"@type": RETRY_INFO, "retryDelay": f"{fault.retry_after}s"})
    if rest:
        error = {"code": fault.status, "status": fault.rpc_status, "message": fault.message, "details": details}
        return json_response({"error": error}, status=fault.status, rest=True, headers=headers)
    body = {
        "jsonrpc": "2.0",
        "id": request_id,
        "error": {"code": fault.code, "message": fault.message, "data": details},
    }
    return json_response(body, status=fault.status if fault.http else 200, rest=False, headers=headers)


@cache
def _challenge() -> str:
    """Returns the value of WWW-Authenticate (RFC 9110): the accepted schemes, bearer tokens and headers of API keys."""
    schemes = security_schemes().values()
    keys = [scheme["apiKeySecurityScheme"]["name"] for scheme in schemes if "apiKeySecurityScheme" in scheme]
    bearer = len(keys) < len(schemes) or not schemes
    challenges = ['Bearer realm="a2a"'] if bearer else []
    return ", ".join([*challenges, *(f'ApiKey realm="a2a", header="{name}"' for name in keys)])


def json_response(body: Any, *, status: int = 200, rest: bool, headers: dict[str, str] | None = None) -> Response:
    """Returns a response with JSON: `application/a2a+json` for REST, `application/json` for JSON-RPC."""
    return text_response(json.dumps(body, ensure_ascii=False), status=status, rest=rest, headers=headers)


def text_response(text: str, *, status: int = 200, rest: bool, headers: dict[str, str] | None = None) -> Response:
    """Returns a response with the JSON text `text`, in the media type of its binding."""
    media_type = "application/a2a+json" if rest else "application/json"
    return Response(text.encode(), status_code=status, media_type=media_type, headers=headers)

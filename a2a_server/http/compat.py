"""Adapters for A2A 0.3: the SDK's adapters, corrected where their errors differ from those that 0.3 clients need."""

import json
from collections.abc import AsyncIterator
from typing import Any

from a2a.compat.v0_3 import types as types_v03
from a2a.compat.v0_3.jsonrpc_adapter import JSONRPC03Adapter
from a2a.compat.v0_3.rest_adapter import REST03Adapter
from a2a.server.context import ServerCallContext
from a2a.server.jsonrpc_models import InvalidParamsError, InvalidRequestError, JSONRPCError
from a2a.server.routes.common import create_event_source_response
from a2a.utils import json_utils
from a2a.utils.error_handlers import build_rest_error_payload, rest_stream_error_handler
from a2a.utils.errors import A2A_REASON_TO_ERROR, JSON_RPC_ERROR_CODE_MAP, A2AError, InternalError
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from a2a_server.wire import QuotaExceededError


async def _with_first(stream: Any) -> AsyncIterator[Any]:
    """Returns the stream after its first item came, so that errors in the request are raised before a stream begins."""
    iterator = aiter(stream)
    try:
        first = await anext(iterator)
    except StopAsyncIteration:
        return _nothing()

    async def items() -> AsyncIterator[Any]:
        yield first
        async for item in iterator:
            yield item

    return items()


async def _nothing() -> AsyncIterator[Any]:
    return
    yield


class JSONRPCAdapter(JSONRPC03Adapter):
    """The SDK's JSON-RPC adapter with two corrections.

    Wrong parameters give InvalidParams. An error before the first event gives a plain error response, no stream.
    """

    def _generate_error_response(self, request_id: Any, error: Any) -> JSONResponse:
        # `parsing` has checked the request object. So what the adapter calls an invalid request is invalid params.
        if isinstance(error, InvalidRequestError):
            error = InvalidParamsError(message="Invalid parameters", data=error.data)
        elif isinstance(error, QuotaExceededError):  # 0.3 has no such error; the adapter would send an internal error
            error = JSONRPCError(code=JSON_RPC_ERROR_CODE_MAP[QuotaExceededError], message=error.message)
        return super()._generate_error_response(request_id, error)

    async def _process_streaming_request(
        self, request_id: Any, request_obj: Any, context: ServerCallContext
    ) -> EventSourceResponse:
        send = request_obj.method == "message/stream"
        start = self.handler.on_message_send_stream if send else self.handler.on_subscribe_to_task
        stream = await _with_first(start(request_obj, context))

        async def events() -> AsyncIterator[dict[str, str]]:
            try:
                async for item in stream:
                    yield {"data": item.model_dump_json(by_alias=True, exclude_none=True)}
            except A2AError as error:
                code = JSON_RPC_ERROR_CODE_MAP.get(type(error), -32603)
                body = types_v03.JSONRPCError(code=code, message=error.message)
                answer = types_v03.JSONRPCErrorResponse(id=request_id, error=body)
                yield {"data": answer.model_dump_json(by_alias=True, exclude_none=True)}

        return create_event_source_response(events())


def _with_old_shape(response: Response) -> Response:
    """Returns the response; an error gets its type and message at the top of the body, where 0.3 clients read them."""
    if response.status_code < 400:
        return response
    body = json.loads(bytes(response.body))
    error = body["error"]
    kind = A2A_REASON_TO_ERROR.get(error["details"][0]["reason"]) if error.get("details") else None
    body |= {"type": (kind or InternalError).__name__, "message": error["message"]}
    return JSONResponse(body, status_code=response.status_code)


class RESTAdapter(REST03Adapter):
    """The SDK's REST adapter with two corrections.

    An error before the first event gives a plain error response, no stream. All errors have the members that 0.3
    clients read.
    """

    async def _handle_request(self, method: Any, request: Request) -> Response:
        return _with_old_shape(await super()._handle_request(method, request))

    async def _handle_streaming_request(self, method: Any, request: Request) -> Response:
        return _with_old_shape(await self._stream(method, request))

    @rest_stream_error_handler
    async def _stream(self, method: Any, request: Request) -> EventSourceResponse:
        await request.body()
        stream = await _with_first(method(request, self._context_builder.build(request)))

        async def events() -> AsyncIterator[dict[str, str]]:
            try:
                async for item in stream:
                    yield {"data": json_utils.dumps(item)}
            except A2AError as error:
                yield {"event": "error", "data": json_utils.dumps(build_rest_error_payload(error))}

        return create_event_source_response(events())

"""The ASGI application of the A2A endpoints: all checks that are possible before the SDK parses a body.

The checks run in this order: path, authentication, the caller's rate limit, size of the body, JSON, version. The
first three run before a byte of the body is read. Then `operations` answers the unary JSON-RPC calls on tasks, and the
SDK's routes answer everything else.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.server.routes import create_rest_routes
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.utils.errors import A2AError
from django.conf import settings
from django.db import DatabaseError
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.routing import Match, Mount, Route, Router

from a2a_server.http import cards, operations, responses
from a2a_server.http.authentication import Authenticator
from a2a_server.http.cards import JSONRPC_PATH, REST_03_PATH, REST_PATH
from a2a_server.http.compat import JSONRPCAdapter, RESTAdapter
from a2a_server.http.handler import ContextBuilder, VolcanicRequestHandler
from a2a_server.http.limiting import CallerLimiter
from a2a_server.http.parsing import Call, FaultError, check_state, open_jsonrpc, parse_json, version_of_rest
from a2a_server.http.responses import fault_response
from a2a_server.wire import V03
from trust.selectors import AuthenticatedCaller
from volcanic.aio import loop, wakeups
from volcanic.aio.db import run_db

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

CARD_PATHS = frozenset({"/.well-known/agent-card.json", "/.well-known/agent.json"})
_JSON_TYPES = frozenset({"application/json", "application/a2a+json", ""})
_VERSION = "a2a-version"
# A client that reads nothing from a response for this time is disconnected. Other clients never wait for it.
_STALLED_READER_SECONDS = 60


def serves(path: str) -> bool:
    """Returns whether a path belongs to the A2A endpoints."""
    return path in CARD_PATHS or path == JSONRPC_PATH or path.startswith(f"{JSONRPC_PATH}/")


class Exchange:
    """One HTTP request and its response: reads the body within the limit, and sets headers of the response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.headers = Headers(scope=scope)
        self.path: str = scope["path"]
        self.jsonrpc = self.path in (JSONRPC_PATH, f"{JSONRPC_PATH}/")
        self.body = b""
        self._receive, self._send = receive, send
        self._body_given = False
        self._gone: asyncio.Task[None] | None = None

    async def read_body(self) -> None:
        """Reads the body into `self.body`.

        Raises FaultError (413) as soon as the body is known to exceed MAX_BODY_BYTES.
        Raises CancelledError when the client disconnects before the end of the body.
        """
        limit = settings.MAX_BODY_BYTES
        declared = self.headers.get("content-length", "")
        if declared.isdigit() and int(declared) > limit:
            raise FaultError(responses.too_large(limit))
        chunks, size, more = [], 0, True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise asyncio.CancelledError
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > limit:
                raise FaultError(responses.too_large(limit))
            more = message.get("more_body", False)
        self.body = b"".join(chunks)

    async def receive(self) -> MutableMapping[str, Any]:
        """Is the ASGI `receive` of the inner application: gives the body that was read, then the disconnect."""
        if not self._body_given:
            self._body_given = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        await self.disconnected()
        return {"type": "http.disconnect"}

    async def disconnected(self) -> None:
        """Waits until the client has disconnected. Any number of asyncio tasks may wait at once."""
        if self._gone is None:
            self._gone = asyncio.create_task(self._watch())
        await asyncio.shield(self._gone)

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Is the ASGI `send` of the inner application. Adds the headers of streams and the media type of REST.

        Raises TimeoutError when the client reads nothing for _STALLED_READER_SECONDS.
        """
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message["headers"]))
            if headers.get("content-type", "").startswith("text/event-stream"):
                headers["Cache-Control"] = "no-cache"
                headers["X-Accel-Buffering"] = "no"
            elif not self.jsonrpc and headers.get("content-type") == "application/json":
                headers["content-type"] = "application/a2a+json"
            message = {**message, "headers": headers.raw}
        async with asyncio.timeout(_STALLED_READER_SECONDS):
            await self._send(message)

    async def answer(self, response: Response) -> None:
        """Sends a response that was not made by the inner application."""
        await response(self.scope, self.receive, self._send)

    def close(self) -> None:
        """Ends the wait for the client's disconnect."""
        if self._gone is not None:
            self._gone.cancel()


class A2AApplication:
    """The A2A endpoints. Each web process makes one instance."""

    def __init__(self) -> None:
        handler, builder = VolcanicRequestHandler(), ContextBuilder()
        self._callers, self._authenticator = CallerLimiter(), Authenticator()
        dispatcher = JsonRpcDispatcher(handler, builder, enable_v0_3_compat=True)
        dispatcher._v03_adapter = JSONRPCAdapter(http_handler=handler, context_builder=builder)
        rest = [
            route
            for route in create_rest_routes(handler, builder, path_prefix=REST_PATH)
            if not isinstance(route, Mount)  # the mount serves tenants, and the card declares no tenants
        ]
        rest_03 = [
            Route(f"{REST_03_PATH}{path}", endpoint, methods=[method])
            for (path, method), endpoint in RESTAdapter(http_handler=handler, context_builder=builder).routes().items()
        ]
        self._jsonrpc = Router(
            [
                Route(JSONRPC_PATH, dispatcher.handle_requests, methods=["POST"]),
                Route(f"{JSONRPC_PATH}/", dispatcher.handle_requests, methods=["POST"]),
            ],
            redirect_slashes=False,
        )
        self._rest = Router([*rest, *rest_03], redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one HTTP request. A database that does not answer gives 503."""
        loop.register(asyncio.get_running_loop())
        exchange = Exchange(scope, receive, send)
        try:
            if exchange.path in CARD_PATHS:
                await self._public_card(exchange)
            else:
                await self._serve(exchange)
        except FaultError as error:
            await exchange.answer(fault_response(error.fault, rest=not exchange.jsonrpc, request_id=error.request_id))
        except DatabaseError:
            logger.exception("the database did not answer")
            await exchange.answer(fault_response(responses.UNAVAILABLE, rest=not exchange.jsonrpc))
        finally:
            exchange.close()

    async def _public_card(self, exchange: Exchange) -> None:
        if exchange.scope["method"] not in ("GET", "HEAD"):
            raise FaultError(responses.METHOD_NOT_ALLOWED)
        card = await run_db(cards.public_card)
        await exchange.answer(cards.card_response(card, exchange.headers, private=False))

    async def _serve(self, exchange: Exchange) -> None:
        self._check_route(exchange)
        caller = await self._authenticator.authenticate(exchange.scope, exchange.headers)
        if wait := await self._callers.take(caller.id, caller.limits.requests_per_minute):
            limit = caller.limits.requests_per_minute
            raise FaultError(responses.rate_limited(f"Over the limit of {limit} requests a minute.", wait))
        if exchange.scope["method"] == "POST":
            media_type = exchange.headers.get("content-type", "").partition(";")[0].strip().lower()
            if media_type not in _JSON_TYPES:
                raise FaultError(responses.NOT_JSON)
            await exchange.read_body()
        exchange.scope["volcanic.caller"] = caller
        wakeups.ensure_listening()
        work = self._serve_jsonrpc if exchange.jsonrpc else self._serve_rest
        await self._until_gone(exchange, work(exchange, caller))

    def _check_route(self, exchange: Exchange) -> None:
        """Raises FaultError for a path that does not exist (404) or does not take this HTTP method (405)."""
        router = self._jsonrpc if exchange.jsonrpc else self._rest
        matches = {route.matches(exchange.scope)[0] for route in router.routes}
        if Match.FULL in matches or exchange.path == f"{REST_PATH}/card":
            return
        if Match.PARTIAL in matches:
            raise FaultError(responses.METHOD_NOT_ALLOWED)
        raise FaultError(responses.method_not_found("There is nothing at this path."))

    async def _until_gone(self, exchange: Exchange, work: Awaitable[None]) -> None:
        """Awaits the work, and cancels it when the client disconnects, so that no request waits without a reader.

        A task that the request submitted goes on without the client.
        """
        serving = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(exchange.disconnected())
        try:
            await asyncio.wait({serving, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not serving.done():
                serving.cancel()
        try:
            await serving
        except (asyncio.CancelledError, TimeoutError):
            logger.debug("client gone: %s", exchange.path)

    async def _serve_jsonrpc(self, exchange: Exchange, caller: AuthenticatedCaller) -> None:
        call = open_jsonrpc(exchange.body, _version_header(exchange))
        if operations.handles(call.method):
            await exchange.answer(await _answer(call, caller))
            return
        exchange.body = json.dumps(call.request).encode()
        _set_version(exchange.scope, call.version)
        await self._jsonrpc(exchange.scope, exchange.receive, exchange.send)

    async def _serve_rest(self, exchange: Exchange, caller: AuthenticatedCaller) -> None:
        scope = exchange.scope
        body: Any = None
        if exchange.body:
            body = parse_json(exchange.body)
            exchange.body = json.dumps(body).encode()
        if exchange.path.startswith(f"{REST_PATH}/"):
            path = exchange.path.removeprefix(REST_PATH)
            version = version_of_rest(path, body, _version_header(exchange))
            if version == V03:
                scope["path"] = f"{REST_03_PATH}/v1{path}"
                scope["raw_path"] = scope["path"].encode()
                exchange.path = scope["path"]
                self._check_route(exchange)
            elif path == "/tasks":
                for name, value in parse_qsl(scope["query_string"].decode("latin-1")):
                    if name == "status":
                        check_state(value)
            elif path == "/extendedAgentCard":
                card = await run_db(cards.extended_card, caller=caller)
                await exchange.answer(cards.card_response(card, exchange.headers, private=True))
                return
        else:
            version = V03
        _set_version(scope, version)
        await self._rest(scope, exchange.receive, exchange.send)


async def _answer(call: Call, caller: AuthenticatedCaller) -> Response:
    """Returns the JSON-RPC response to a unary call on tasks."""
    try:
        result = await operations.call(call.method, call.params, caller)
    except A2AError as error:
        return responses.json_response(build_error_response(call.id, error), rest=False)
    return responses.text_response(f'{{"jsonrpc":"2.0","id":{json.dumps(call.id)},"result":{result}}}', rest=False)


def _version_header(exchange: Exchange) -> str:
    """Returns the request's A2A-Version, from the header or else the query parameter (specification 3.6.1), else ""."""
    if (header := exchange.headers.get(_VERSION)) is not None:
        return header
    query = parse_qsl(exchange.scope["query_string"].decode("latin-1"))
    return next((value for name, value in query if name.lower() == _VERSION), "")


def _set_version(scope: Scope, version: str) -> None:
    headers = [(name, value) for name, value in scope["headers"] if name != _VERSION.encode()]
    scope["headers"] = [*headers, (_VERSION.encode(), version.encode())]

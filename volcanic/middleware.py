"""Middleware of every Django request: sets the actor and the request id, and records the owner's presence."""

import re
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponseBase

from volcanic.acting import SYSTEM, acting_as
from volcanic.presence import owner_seen

REQUEST_ID = "X-Request-ID"
# Form of a request id that a proxy in front may have set already.
_GIVEN = re.compile(r"[A-Za-z0-9-]{8,64}", re.ASCII)


class PresenceMiddleware:
    """Records the presence of owners, and sets the actor and the request id while a request is handled.

    The request id goes into log lines, audit entries and the response. This middleware must come after Django's
    AuthenticationMiddleware.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            # Tells Django that this middleware must be awaited.
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Returns the response; under an asynchronous server, a coroutine that returns the response."""
        if self._is_async:
            return self._answer(request)
        request_id = _request_id(request)
        with _known(_come_in(request), request_id):
            response: HttpResponseBase = self.get_response(request)
        response[REQUEST_ID] = request_id
        return response

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        request_id = _request_id(request)
        name = await sync_to_async(_come_in)(request)
        with _known(name, request_id):
            response: HttpResponseBase = await self.get_response(request)
        response[REQUEST_ID] = request_id
        return response


def _request_id(request: HttpRequest) -> str:
    given = request.headers.get(REQUEST_ID, "")
    return given if _GIVEN.fullmatch(given) else uuid.uuid4().hex


def _come_in(request: HttpRequest) -> str:
    """Returns the actor's name for a request, and records an owner's presence.

    Reads the database only if the request has a session.
    """
    user = request.user
    if user.pk is None or not (user.is_active and user.is_staff):
        return SYSTEM
    owner_seen(user.pk)
    return f"owner {user.get_username()}"


@contextmanager
def _known(name: str, request_id: str) -> Iterator[None]:
    """Sets the actor `name` and the request id within the block.

    Views in other threads see both, since asgiref copies the context to those threads.
    """
    with acting_as(name, request_id), structlog.contextvars.bound_contextvars(request_id=request_id):
        yield

"""What every request of Django's passes: who acts, under which id, and that an owner is there."""

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
# What a proxy in front may have given already.
_GIVEN = re.compile(r"[A-Za-z0-9-]{8,64}", re.ASCII)


class PresenceMiddleware:
    """Notes that owners are there, and says for the time of a request who acts and under which id.

    The id goes into log lines, into the audit and into the answer. Comes after the authentication.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            # What Django asks to know that it has to be awaited.
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Answers a request; with a coroutine where the server is asynchronous."""
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
    """Returns who acts in a request. An owner is noted as seen. Only asks the database where there is a session."""
    user = request.user
    if user.pk is None or not (user.is_active and user.is_staff):
        return SYSTEM
    owner_seen(user.pk)
    return f"owner {user.get_username()}"


@contextmanager
def _known(name: str, request_id: str) -> Iterator[None]:
    """Has `name` act, and log lines tell the id. Views in other threads see both: asgiref brings contexts along."""
    with acting_as(name, request_id), structlog.contextvars.bound_contextvars(request_id=request_id):
        yield

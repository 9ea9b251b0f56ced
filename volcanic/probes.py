"""Probes for whoever runs the web process. Answered in front of Django: they come by address, under no name of ours."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from django.db import DatabaseError, connection
from starlette.responses import JSONResponse

from volcanic.aio.db import run_db

logger = logging.getLogger(__name__)

ALIVE, READY = "/healthz", "/readyz"
PATHS = frozenset({ALIVE, READY})


async def probe(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """Answers a request for one of PATHS: 200 as long as the process serves at all; READY only when the database
    answers too, else 503. Redis may be away: nothing is lost by that."""
    answer = JSONResponse({"status": "ok"})
    if scope["path"] == READY:
        try:
            await run_db(_ask_database)
        except DatabaseError as error:
            logger.warning("not ready: %s", error)
            answer = JSONResponse({"status": "database unreachable"}, status_code=503)
    await answer(scope, receive, send)


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")

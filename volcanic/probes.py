"""Health probes of the web process.

They are answered before Django, since a probe names the host by its IP address, which ALLOWED_HOSTS does not list.
"""

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
    """Answers a request for one of PATHS.

    ALIVE answers 200. READY answers 200 if the database answers, else 503. Redis is not asked, since no data is lost
    while Redis is down.
    """
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

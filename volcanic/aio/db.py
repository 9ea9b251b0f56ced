"""Database access for asynchronous code: a few threads that keep their connections.

Django's own bridge takes and returns a connection for every call, which costs more than a short query. More threads
would only compete with the event loop for the interpreter, so `DB_THREADS` is small. A coroutine that waits for
something else (a stream, a blocking send) holds neither a thread nor a connection.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

P = ParamSpec("P")
T = TypeVar("T")

# A connection that was idle for longer than this is tested before use.
_REST_SECONDS = 1.0
_thread = threading.local()


@cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=settings.DB_THREADS, thread_name_prefix="db")


def _call(function: Callable[[], T]) -> T:
    now = time.monotonic()
    rested = connection.connection is not None and now - getattr(_thread, "used", 0.0) > _REST_SECONDS
    if rested and not connection.is_usable():
        connection.close()
    try:
        return function()
    except (InterfaceError, DatabaseError):
        if not connection.in_atomic_block and connection.connection is not None and not connection.is_usable():
            connection.close()
        raise
    finally:
        _thread.used = time.monotonic()


async def run_db(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs a synchronous database function on a database thread. Returns the function's result and raises its errors.

    A function that has started runs to its end even if the awaiting coroutine is canceled, so that no transaction is
    cut in half.
    """
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_executor(), partial(_call, partial(function, *args, **kwargs)))

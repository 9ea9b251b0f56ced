"""Event loop of this process: the ASGI server's loop, or in a worker a loop in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def register(loop: asyncio.AbstractEventLoop) -> None:
    """Makes `loop` the process's loop. The ASGI application calls this, since the ASGI server owns the loop there."""
    global _loop
    if _loop is not loop:
        with _lock:
            _loop = loop


def get_loop() -> asyncio.AbstractEventLoop:
    """Returns the process's running loop. Starts a loop in a daemon thread if none runs. Callable from any thread."""
    global _loop
    with _lock:
        if _loop is None or not _loop.is_running():
            _loop = asyncio.new_event_loop()
            started = threading.Event()
            _loop.call_soon(started.set)
            threading.Thread(target=_loop.run_forever, name="loop", daemon=True).start()
            started.wait()
        return _loop


def run_on_loop(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` on the process's loop and returns its result. For threads: blocks until `work` is done.

    Raises the errors of `work`, and concurrent.futures.CancelledError if `work` was canceled.
    """
    return asyncio.run_coroutine_threadsafe(work, get_loop()).result()

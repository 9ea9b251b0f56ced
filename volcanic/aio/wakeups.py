"""Wake-ups between processes: "something changed, look at the database".

A wake-up may be lost at any time. A waiter therefore also reads the database every few seconds without a wake-up.

Every waiting process joins one group of Django Channels, once, and passes each wake-up to its own waiters. One group
for each task would cost two round trips to Redis for every request, and many subscribers that come and go would lose
messages. A wake-up for a task that nobody in the process waits for costs almost nothing.
"""

import asyncio
import logging
import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from channels.layers import get_channel_layer

from volcanic.aio.loop import get_loop

logger = logging.getLogger(__name__)

GROUP = "wakeups"
SOON_SECONDS = 0.05

_waiters: defaultdict[str, set["Waiter"]] = defaultdict(set)
# Wake-ups to be sent: the newest hint for each key. One coroutine sends until the outbox is empty.
_outbox: dict[str, str] = {}
_outbox_lock = threading.Lock()
# Keys whose wake-up is to be sent within SOON_SECONDS.
_soon: set[str] = set()
_sender: "Future[None] | None" = None
_listeners: dict[asyncio.AbstractEventLoop, "asyncio.Task[None]"] = {}


class Waiter:
    """Waits for wake-ups of one key. Created by `waiting`."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.hint = ""

    def wake(self, hint: str) -> None:
        """Ends the current `wait`, or makes the next one return at once."""
        self.hint = hint
        self._event.set()

    async def wait(self, seconds: float) -> bool:
        """Waits for a wake-up, at most `seconds`. Returns whether one came; `hint` then holds the sender's hint."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


@contextmanager
def waiting(key: str) -> Iterator[Waiter]:
    """Registers a waiter for `key` on the running loop.

    Register first and read the database afterwards, so that no change is missed in between.
    """
    ensure_listening()
    waiter = Waiter()
    _waiters[key].add(waiter)
    try:
        yield waiter
    finally:
        _waiters[key].discard(waiter)
        if not _waiters[key]:
            del _waiters[key]


def send(key: str, hint: str = "") -> None:
    """Wakes all waiters for `key`, in every process. Callable from any thread, after commit. Never blocks, never fails.

    Wake-ups that come while a message is being sent go together in the next message.
    """
    global _sender
    with _outbox_lock:
        _outbox[key] = hint
        if _sender is None or _sender.done():
            _sender = asyncio.run_coroutine_threadsafe(_send_outbox(), get_loop())


def send_soon(key: str) -> None:
    """Wakes all waiters for `key` within SOON_SECONDS, once for all calls until then.

    For pages that show many changes: a person sees no difference, and a burst of changes costs one message.
    """
    with _outbox_lock:
        if key in _soon:
            return
        _soon.add(key)
    loop = get_loop()
    loop.call_soon_threadsafe(loop.call_later, SOON_SECONDS, _send_now, key)


def _send_now(key: str) -> None:
    with _outbox_lock:
        _soon.discard(key)
    send(key)


async def _send_outbox() -> None:
    global _sender
    while True:
        with _outbox_lock:
            keys = dict(_outbox)
            _outbox.clear()
            if not keys:
                _sender = None
                return
        await _send({"type": "wake", "keys": keys})


async def _send(message: dict[str, Any]) -> None:
    for last_try in (False, True):
        try:
            await get_channel_layer().group_send(GROUP, message)
            return
        except Exception as error:  # noqa: BLE001  any error of Redis: waiters read the database soon anyway
            # The first message after a restart of Redis meets a dead connection; the second gets a new connection.
            if last_try:
                logger.warning("wake-up not sent: %s", error)


def ensure_listening() -> None:
    """Starts this loop's listener if it does not run."""
    loop = asyncio.get_running_loop()
    task = _listeners.get(loop)
    if task is None or task.done():
        _listeners[loop] = loop.create_task(_listen(), name="wakeups")


async def _listen() -> None:
    while True:
        try:
            layer = get_channel_layer()
            channel = await layer.new_channel()
            await layer.group_add(GROUP, channel)
            while True:
                message = await layer.receive(channel)
                for key, hint in message["keys"].items():
                    for waiter in tuple(_waiters.get(key, ())):
                        waiter.wake(hint)
        except Exception as error:  # noqa: BLE001  Redis is down: waiters read the database meanwhile
            logger.warning("not listening for wake-ups: %s", error)
            await asyncio.sleep(1)

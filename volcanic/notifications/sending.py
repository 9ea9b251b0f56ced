"""Sends a text to a channel in a process of its own, which is killed when its time is over.

Apprise blocks, and time limits of sockets are for each read: a service that sends a byte now and then passes them all.
The end of a process closes its sockets, whichever library opened them. It costs 0.3 s and 40 MB to start one, so
whoever calls this sees to how many there are. Where a text goes is secret, and comes through a pipe: others on this
machine can read a command line, and the environment goes on to whatever a process starts.
"""

import asyncio
import json
import math
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import redirect_stdout, suppress
from pathlib import Path

from volcanic.notifications.apprise_urls import channel_send

_PROJECT = Path(__file__).resolve().parent.parent.parent


async def channel_send_apart(url: str, title: str, text: str, *, seconds: float) -> str:
    """Sends a text to one channel. Returns what went wrong, "" if nothing did. When the time is over, or this coroutine
    is cancelled, nothing is left of it."""
    order = json.dumps({"url": url, "title": title, "text": text, "seconds": seconds})
    try:
        async with asyncio.timeout(seconds):
            return await _ordered(order.encode())
    except TimeoutError:
        return f"No answer within {seconds:g} seconds."
    except OSError as error:  # of this machine: no more processes, no more memory
        return f"Sending failed: {type(error).__name__}."


async def _ordered(order: bytes) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, cwd=_PROJECT, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
    )
    try:
        said, _ = await process.communicate(order)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        process._transport.close()  # type: ignore[attr-defined]  # or it waits for whoever else holds the pipes
        await process.wait()
    return said.decode() if process.returncode == 0 else f"Sending failed: exit status {process.returncode}."


def main() -> None:
    """The process: takes an order on its standard input and writes what went wrong to its standard output."""
    order = json.load(sys.stdin)
    # Whoever was to kill this process can be dead.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(math.ceil(order["seconds"]) + 1)
    try:
        with redirect_stdout(sys.stderr):
            error = channel_send(order["url"], order["title"], order["text"])
    except Exception as raised:  # noqa: BLE001  a plugin's; its text may hold the address
        error = f"Sending failed: {type(raised).__name__}."
    sys.stdout.buffer.write(error.encode(errors="replace"))
    sys.stdout.flush()
    os._exit(0)  # waits for no thread that a plugin left behind


if __name__ == "__main__":
    main()

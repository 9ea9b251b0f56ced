"""Sending of a text to a channel in a separate process, which is killed at its time limit.

Apprise blocks. Time limits of sockets apply to each read, so a service that sends a byte now and then passes all of
them. The end of a process closes all its sockets. To start a process takes 0.3 s and 40 MB, so the caller must limit
the number of processes. The channel's address is secret and therefore comes through a pipe: other users of this machine
can read a command line, and child processes inherit the environment.
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
    """Sends a text to one channel and returns an error text, "" for success.

    After `seconds`, and when this coroutine is canceled, the process is killed.
    """
    order = json.dumps({"url": url, "title": title, "text": text, "seconds": seconds})
    try:
        async with asyncio.timeout(seconds):
            return await _ordered(order.encode())
    except TimeoutError:
        return f"No answer within {seconds:g} seconds."
    except OSError as error:  # this machine has no processes or no memory left
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
        process._transport.close()  # type: ignore[attr-defined]  # else wait() waits for other holders of the pipes
        await process.wait()
    return said.decode() if process.returncode == 0 else f"Sending failed: exit status {process.returncode}."


def main() -> None:
    """Main function of the process: reads an order from standard input, writes the error text to standard output."""
    order = json.load(sys.stdin)
    # An alarm ends this process if the parent, which should kill it, is dead.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(math.ceil(order["seconds"]) + 1)
    try:
        with redirect_stdout(sys.stderr):
            error = channel_send(order["url"], order["title"], order["text"])
    except Exception as raised:  # noqa: BLE001  a plugin may raise anything; the text may hold the address
        error = f"Sending failed: {type(raised).__name__}."
    sys.stdout.buffer.write(error.encode(errors="replace"))
    sys.stdout.flush()
    os._exit(0)  # does not wait for threads that a plugin left behind


if __name__ == "__main__":
    main()

"""Supervision of one program: start, output, readiness, restart, stop."""

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable

from volcanic.processes.supervisor.spec import Spec

Emit = Callable[[str, str], None]  # takes the child's name and one line without its line end

DEATHS = 3  # a child with this many deaths within WINDOW is given up
WINDOW = 60.0  # seconds
BACKOFF = 0.3  # seconds, multiplied by the number of deaths within WINDOW
PROBE_EVERY = 0.03  # seconds
_LONGEST_LINE = 64 * 1024


class GaveUp(Exception):
    """A child died too often, or could not be started at all."""


class Child:
    """One program, which is restarted when it dies. It belongs to one event loop and ends with that loop's thread."""

    def __init__(self, spec: Spec, emit: Emit) -> None:
        self.spec = spec
        self.ready = asyncio.Event()
        self.pid: int | None = None
        self._emit = emit
        self._stopping = False
        self._hurry = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self.task = asyncio.create_task(self._keep(), name=spec.name)

    async def wait_ready(self) -> None:
        """Returns when the program is ready. Raises GaveUp when the program was given up or stopped."""
        waiter = asyncio.create_task(self.ready.wait())
        try:
            await asyncio.wait({waiter, self.task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
        if self.task.done():
            self.task.result()
            raise GaveUp(f"{self.spec.name} was stopped")

    async def stop(self) -> None:
        """Sends the stop signal, and SIGKILL after the grace period. Returns when the program is gone."""
        self._stopping = True
        process = self._process
        if process is None:
            self.task.cancel()
        else:
            await self._end(process)
        await asyncio.wait({self.task})
        if not self.task.cancelled():
            self.task.exception()  # marks the exception as read: supervise() reports it

    def hasten(self) -> None:
        """Shortens the grace period of the current or next stop."""
        self._hurry.set()

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        self._signal(process, self.spec.stop_signal)
        hurry = asyncio.create_task(self._hurry.wait())
        done, _ = await asyncio.wait({self.task, hurry}, timeout=self.spec.grace, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if hurry in done:
            await asyncio.wait({self.task}, timeout=self.spec.hasty_grace)
        if not self.task.done():
            self._emit(self.spec.name, "did not stop in time: killed")
            self._signal(process, signal.SIGKILL)

    @staticmethod
    def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)

    async def _keep(self) -> None:
        deaths: list[float] = []
        while True:
            if self.spec.prepare is not None:
                await asyncio.to_thread(self.spec.prepare)
            code = await self._run_once()
            if self._stopping:
                return
            now = time.monotonic()
            deaths = [death for death in deaths if now - death < WINDOW] + [now]
            self._emit(self.spec.name, describe(code))
            if len(deaths) >= DEATHS:
                raise GaveUp(f"{self.spec.name} died {DEATHS} times within a minute, the last time: {describe(code)}")
            await asyncio.sleep(BACKOFF * len(deaths))

    async def _run_once(self) -> int:
        """Runs the program to its end. Returns its return code, negative for a signal as in subprocess."""
        reading, writing = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *self.spec.command(),
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                **self.spec.options(),
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._process, self.pid = process, process.pid
        helpers = [asyncio.create_task(self._read(reading)), asyncio.create_task(self._probe())]
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            self._signal(process, signal.SIGKILL)
            raise
        finally:
            self._process = self.pid = None
            self.ready.clear()
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # kills its children that are still in its process group
            # The pipe may hold the last output. The wait is limited, since a grandchild may keep the pipe open.
            await asyncio.wait(helpers[:1], timeout=0.3)
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
        return code

    async def _probe(self) -> None:
        if self.spec.probe is None:
            if self.spec.ready_text is None:
                self.ready.set()
            return
        while not await asyncio.to_thread(self.spec.probe):  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(PROBE_EVERY)
        self.ready.set()

    async def _read(self, reading: int) -> None:
        async for line in lines(reading):
            self._emit(self.spec.name, line)
            if self.spec.ready_text is not None and self.spec.ready_text in line:
                self.ready.set()


async def lines(reading: int) -> AsyncIterator[str]:
    """Yields the lines from a pipe and closes its descriptor at the end. Cuts lines longer than _LONGEST_LINE."""
    reader = asyncio.StreamReader()
    pipe = os.fdopen(reading, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    rest = b""
    try:
        while chunk := await reader.read(_LONGEST_LINE):
            *whole, rest = (rest + chunk).split(b"\n")
            if len(rest) > _LONGEST_LINE:
                whole, rest = [*whole, rest], b""
            for line in whole:
                yield line.decode(errors="replace").rstrip("\r")
    finally:
        transport.close()
    if rest:
        yield rest.decode(errors="replace")


def describe(code: int) -> str:
    """Returns a return code in words."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    return f"ended with code {code}"

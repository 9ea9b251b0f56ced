"""Runner of the whole product in the foreground, for `manage.py up`.

The steps: start the services; migrate; run the first-run step while the programs start; print the ready line when all
programs are ready; then watch. The runner ends with a signal, or when a program cannot be kept alive.
"""

import asyncio
import contextlib
import os
import signal
import socket
from asyncio.subprocess import DEVNULL
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from volcanic.processes.supervisor.child import GaveUp, describe, lines
from volcanic.processes.supervisor.group import Supervisor
from volcanic.processes.supervisor.log import Log
from volcanic.processes.supervisor.spec import Spec

_LISTEN_EVERY = 1.0  # seconds
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failed(Exception):
    """The product cannot run. The message gives the reason."""


class Services(Protocol):
    """Services that start before the programs: `volcanic.processes.embedded.Embedded`, or a double in tests."""

    async def start(self) -> object: ...
    async def stop(self) -> None: ...
    async def supervise(self) -> None: ...
    def hasten(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The programs of the product.

    migrate        runs before the programs, if `must_migrate` returns True; that function is called in a thread once
                   the services answer
    first_run      runs while the programs start; its stdout is printed after the ready line
    programs       kept running; stopped in the opposite order, the last first
    """

    host: str
    port: int
    services: Services
    must_migrate: Callable[[], bool]
    migrate: Spec
    first_run: Spec
    programs: tuple[Spec, ...]


def run(plan: Plan, log: Log) -> int:
    """Runs the plan until a signal or a failure ends it, and returns the exit code. Must run in the main thread."""
    try:
        check_port(plan.host, plan.port)
    except Failed as error:
        log.plain(str(error))
        return 1
    return asyncio.run(_Run(plan, log).until_stopped())


def check_port(host: str, port: int) -> None:
    """Raises Failed when the web server could not listen on the port."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, number) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Failed(f"cannot listen on {host}:{port}: {reason}. Choose another port: make up PORT=8001") from None


class _Run:
    """One run of a plan."""

    def __init__(self, plan: Plan, log: Log) -> None:
        self._plan = plan
        self._log = log
        self._programs = Supervisor(log)
        self._told = asyncio.Event()

    async def until_stopped(self) -> int:
        """Runs the plan, stops everything that was started, and returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                loop.add_signal_handler(number, self._on_signal)
        serving = asyncio.create_task(self._serve())
        told = asyncio.create_task(self._told.wait())
        listening = asyncio.create_task(self._until_unheard())
        await asyncio.wait({serving, told, listening}, return_when=asyncio.FIRST_COMPLETED)
        code = 0
        if serving.done():
            code = 1
            self._log.plain(f"stopping: {_reason(serving)}")
        else:
            self._log.plain("stopping (press Ctrl-C again to hurry)")
            serving.cancel()
        await asyncio.wait({serving})
        with contextlib.suppress(asyncio.CancelledError):
            serving.exception()
        await _cancel([told, listening])
        await self._programs.stop()
        await self._plan.services.stop()
        return code

    async def _until_unheard(self) -> None:
        """Returns when the reader of the output is gone: a hang-up that reached only `make`, or a closed pipe."""
        while self._log.is_heard():  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(_LISTEN_EVERY)

    def _on_signal(self) -> None:
        if self._told.is_set():
            self._programs.hasten()
            self._plan.services.hasten()
        self._told.set()

    async def _serve(self) -> None:
        """Starts the services and programs, then watches them. Does not return; raises the error that ended them."""
        plan = self._plan
        await plan.services.start()
        await _first(plan.services.supervise(), self._start())
        await _first(plan.services.supervise(), self._programs.supervise())

    async def _start(self) -> None:
        plan = self._plan
        if await asyncio.to_thread(plan.must_migrate):
            await self._step(plan.migrate, lambda line: self._log(plan.migrate.name, line))
        self._programs.start(*plan.programs)
        printed: list[str] = []
        await _all(self._step(plan.first_run, printed.append), self._programs.wait_ready())
        self._log.plain(f"ready: http://localhost:{plan.port}")
        for line in printed:
            self._log.plain(line)

    async def _step(self, spec: Spec, take: Callable[[str], None]) -> None:
        """Runs a program to its end. `take` gets the lines of stdout, the log gets the lines of stderr.

        Raises Failed for an exit code other than 0.
        """
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        process = await asyncio.create_subprocess_exec(
            *spec.command(), stdin=DEVNULL, stdout=out_end, stderr=err_end, **spec.options()
        )
        os.close(out_end)
        os.close(err_end)
        try:
            await asyncio.gather(_collect(out, take), _collect(err, lambda line: self._log(spec.name, line)))
            code = await process.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), spec.grace)
            raise
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if code != 0:
            raise Failed(f"{spec.name} {describe(code)}")


async def _collect(pipe: int, take: Callable[[str], None]) -> None:
    async for line in lines(pipe):
        take(line)


async def _first(*work: Coroutine[Any, Any, None]) -> None:
    """Returns, or raises, as soon as the first coroutine does. Cancels the other coroutines."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await _cancel(tasks)


async def _all(*work: Coroutine[Any, Any, None]) -> None:
    """Returns when all coroutines have returned. If one raises, cancels the others and raises once they are gone."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        await _cancel(tasks)


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _reason(task: asyncio.Task[None]) -> str:
    error = task.exception()
    if error is None:
        return "everything ended"
    if isinstance(error, (Failed, GaveUp, RuntimeError)):
        return str(error)
    return f"{type(error).__name__}: {error}"

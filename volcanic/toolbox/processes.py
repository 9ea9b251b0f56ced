"""Execution of a command with limits on time, output, processes, memory and disk; all its processes are killed."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

MAX_PROCESSES = 128
MAX_MEMORY_BYTES = 2 * 1024**3
# A command that prints more is ended, since reading it would keep the worker busy.
MAX_OUTPUT_BYTES = 1024 * 1024
LOOK_EVERY_SECONDS = 0.1
# Time limit for reading the rest of the output after the command has ended.
DRAIN_SECONDS = 5.0
# Other processes use up free space too. A loss of free space stops the command without further measurement only if it
# exceeds the allowance by this many bytes.
_OTHERS_BYTES = 512 * 1024**2
_INODE_BYTES = 4096
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

TOO_LONG = "it took longer than {seconds:.0f} seconds"
TOO_MUCH_OUTPUT = f"it printed over {MAX_OUTPUT_BYTES} bytes; write them to a file"
TOO_MANY = f"it ran more than {MAX_PROCESSES} processes at a time"
TOO_LARGE = f"it used more than {MAX_MEMORY_BYTES // 1024**2} MB of memory"
TOO_FULL = "it filled the disk with more than may be written"


@dataclass(kw_only=True)
class Finished:
    """The result of a command: its output, its exit code, and the reason if it was stopped."""

    output: bytes = b""
    exit_code: int | None = None
    stopped: str = ""


@dataclass(kw_only=True)
class Space:
    """Disk space for a command: it may write `left` bytes. `used` measures, slowly, how many of them are taken."""

    folder: Path
    left: int
    used: Callable[[], int]
    _before: int = field(init=False, default=0)
    _asked_at: float = field(init=False, default=0.0)

    def begin(self) -> None:
        """Notes the free space before the command. Blocks."""
        self._before = self._free()

    def too_much(self) -> bool:
        """Returns whether the command wrote more than `left` bytes. Blocks.

        Calls `used` only if the disk's free space has shrunk by `left` bytes, and at most once a second. Free space is
        watched because it also shows files that were deleted while open.
        """
        lost = self._before - self._free()
        if lost < self.left:
            return False
        if lost >= self.left + _OTHERS_BYTES:
            return True
        if time.monotonic() < self._asked_at + 1:
            return False
        self._asked_at = time.monotonic()
        return self.used() > self.left

    def _free(self) -> int:
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize + status.f_favail * _INODE_BYTES


async def run(
    command: Callable[[int], Sequence[str]],
    *,
    environment: Mapping[str, str],
    folder: Path,
    seconds: float,
    space: Space | None = None,
    sandboxed: bool = True,
) -> Finished:
    """Runs a command and returns its result.

    `command` returns the command line for a status descriptor (see bubblewrap's --json-status-fd). `seconds` is the
    time limit. The command ends when its first process ends, when it breaks a limit, or when this coroutine is
    canceled. All other processes that the command started are killed then.
    """
    reader, writer = os.pipe()
    try:
        os.set_blocking(reader, False)
        process = await asyncio.create_subprocess_exec(
            *command(writer),
            env=dict(environment),
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=(writer,),
            start_new_session=True,
        )
        os.close(writer)
        writer = -1
        return await _Watch(process, reader, space, sandboxed=sandboxed).to_the_end(seconds)
    finally:
        os.close(reader)
        if writer != -1:
            os.close(writer)


class _Watch:
    """Follows one running command."""

    def __init__(
        self, process: asyncio.subprocess.Process, status: int, space: Space | None, *, sandboxed: bool
    ) -> None:
        self._process = process
        self._sandboxed = sandboxed
        self._status = status
        self._told = b""
        self._first: int | None = None  # the sandbox's first process
        self._space = space
        self._output = bytearray()
        self._flooded = asyncio.Event()

    async def to_the_end(self, seconds: float) -> Finished:
        reading = asyncio.create_task(self._read())
        watching = asyncio.create_task(self._look())
        flooded = asyncio.create_task(self._flooded.wait())
        over = asyncio.create_task(self._process.wait())
        stopped = ""
        try:
            done, _ = await asyncio.wait(
                {watching, flooded, over}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                stopped = TOO_LONG.format(seconds=seconds)
            elif watching in done:
                stopped = watching.result()
        finally:
            watching.cancel()
            self._kill()
            # The pipe closes once all of the command's processes are gone.
            await asyncio.wait({reading, over}, timeout=DRAIN_SECONDS)
            for task in (reading, flooded, over):
                task.cancel()
            self._process._transport.close()  # type: ignore[attr-defined]
        self._hear()
        if self._flooded.is_set():
            stopped = stopped or TOO_MUCH_OUTPUT
        return Finished(output=bytes(self._output), exit_code=self._exit_code(), stopped=stopped)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while chunk := await self._process.stdout.read(65536):
            if not self._flooded.is_set():
                self._output += chunk
                if len(self._output) > MAX_OUTPUT_BYTES:
                    self._flooded.set()

    async def _look(self) -> str:
        """Checks the limits repeatedly. Returns the broken limit; "" when the first process has ended."""
        if self._space is not None:
            await asyncio.to_thread(self._space.begin)
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            if self._process.returncode is not None:
                return ""
            self._hear()
            if self._first is not None and (problem := _crowded(self._first)):
                return problem
            if self._space is not None and await asyncio.to_thread(self._space.too_much):
                return TOO_FULL

    def _hear(self) -> None:
        """Reads bubblewrap's status: one JSON document a line."""
        with suppress(BlockingIOError):
            while piece := os.read(self._status, 4096):
                self._told += piece
        first = self._said("child-pid")
        self._first = first if isinstance(first, int) else None

    def _said(self, member: str) -> object:
        for line in self._told.splitlines():
            with suppress(ValueError):
                document = json.loads(line)
                if member in document:
                    return document[member]
        return None

    def _exit_code(self) -> int | None:
        """Returns the command's exit code; None if the command never began or was killed."""
        if not self._sandboxed:
            return self._process.returncode
        code = self._said("exit-code")
        return code if isinstance(code, int) else None

    def _kill(self) -> None:
        """Kills the command's session. The sandbox ends with the session, and all processes end with the sandbox."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _crowded(first: int) -> str:
    """Returns the limit that the processes of a sandbox break together, read from the sandbox's own /proc; else "".

    The kernel's limits apply to each process alone. The kernel's limit on the number of processes does not apply at all
    if the worker runs as root.
    """
    root = f"/proc/{first}/root"
    try:
        if os.path.samefile(root, "/"):
            return ""  # the sandbox is still being set up
        pids = [name for name in os.listdir(f"{root}/proc") if name.isdigit()]
    except OSError:
        return ""
    if len(pids) > MAX_PROCESSES:
        return TOO_MANY
    memory = 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"{root}/proc/{pid}/statm").read_text().split()
            memory += (int(fields[1]) - int(fields[2])) * _PAGE_BYTES
    return TOO_LARGE if memory > MAX_MEMORY_BYTES else ""

"""Runs a command and sees to it that nothing of it is left when its time is over, whatever it did meanwhile."""

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
# A command that prints more is ended: it would keep the worker busy reading.
MAX_OUTPUT_BYTES = 1024 * 1024
LOOK_EVERY_SECONDS = 0.1
# For the last of the output, when the command is over.
DRAIN_SECONDS = 5.0
# On a suspicion by free space alone (others write too), this much beyond what is allowed is too much.
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
    """What came of a command: what it printed, its exit code, and why it was stopped if it was."""

    output: bytes = b""
    exit_code: int | None = None
    stopped: str = ""


@dataclass(kw_only=True)
class Space:
    """How much a command may write: `left` bytes, where `used` tells (slowly) how much of them was taken."""

    folder: Path
    left: int
    used: Callable[[], int]
    _before: int = field(init=False, default=0)
    _asked_at: float = field(init=False, default=0.0)

    def begin(self) -> None:
        """Notes how much is free. Blocks."""
        self._before = self._free()

    def too_much(self) -> bool:
        """Tells whether more was written. Blocks; looks closely only where the disk has lost that much, once a second
        at most. Files that were deleted while open count too, which only the disk's free space shows."""
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
    """Runs the command that `command` makes for a status descriptor (see bubblewrap's --json-status-fd).

    It is over when its first process ends, when it breaks a limit, or when this coroutine is cancelled; whatever
    other processes it started are killed then.
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
            # Nothing keeps the pipe open any more when all of the command's processes are gone.
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
        """Looks again and again, and returns which limit was broken; "" when the first process is over."""
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
        """Takes in what bubblewrap says: one JSON document a line."""
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
        """Returns the command's exit code; None where there is none, since it never began or was killed."""
        if not self._sandboxed:
            return self._process.returncode
        code = self._said("exit-code")
        return code if isinstance(code, int) else None

    def _kill(self) -> None:
        """Kills the command's session, which the sandbox does not outlive, and with it all that is inside."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _crowded(first: int) -> str:
    """Returns which limit the processes of a sandbox break together; its /proc tells, which shows no others.

    Limits of the kernel's bind each process alone, and the one on their number not at all where the worker is root.
    """
    root = f"/proc/{first}/root"
    try:
        if os.path.samefile(root, "/"):
            return ""  # the sandbox is still being made
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

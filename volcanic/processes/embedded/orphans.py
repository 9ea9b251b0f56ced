"""Orphans: server processes that a killed runner left behind. They are found by their working directory and stopped.

Both servers, and PostgreSQL's children, keep the data directory as their working directory. A process counts as ours if
its working directory is the data directory, its program has the server's name and its user owns the data directory. A
pid in a file is no proof: after a crash, another program may have that pid.
"""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from volcanic.processes.embedded.paths import EmbeddedError

# Steps to stop a server without a runner: seconds to wait, then the signal to send. The kernel sent a stop signal when
# the runner died, and a fast shutdown may take long to write. Therefore the first step repeats the same signal.
_STEPS = {
    "postgres": ((2.0, signal.SIGINT), (60.0, signal.SIGQUIT), (10.0, signal.SIGKILL)),
    "valkey-server": ((2.0, signal.SIGTERM), (60.0, signal.SIGKILL)),
}
_LAST_WAIT = 10.0


def clear(data: Path, program: str) -> None:
    """Stops all processes of `program` that run in the directory `data`, and returns when they are gone.

    Blocks during their shutdown. Raises EmbeddedError when a process cannot be stopped.
    """
    for patience, number in _STEPS[program]:
        if _gone(data, program, patience):
            return
        for pid in _leaders(find(data, program)):
            _signal(pid, data, program, number)
    if not _gone(data, program, _LAST_WAIT):
        raise EmbeddedError(f"{program} (processes {find(data, program)}) still runs on {data} and cannot be stopped")


def kill(folder: Path) -> None:
    """Kills all processes of the folder's user that work in `folder`, of any program, and returns when they are gone.

    For an unfinished initdb, which starts a shell and a server several times and has no state worth a shutdown. Raises
    EmbeddedError when a process stays.
    """
    deadline = time.monotonic() + _LAST_WAIT
    while pids := find(folder):
        for pid in pids:
            _signal(pid, folder, None, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise EmbeddedError(f"processes {pids} still run in {folder} and cannot be stopped")
        time.sleep(0.02)


def _gone(data: Path, program: str, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while find(data, program):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _leaders(pids: list[int]) -> list[int]:
    """Returns the pids whose parent is not in `pids`: PostgreSQL's children must not be signaled."""
    return [pid for pid in pids if _parent(pid) not in pids]


def _parent(pid: int) -> int:
    try:
        # The process name in brackets may contain spaces and brackets.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def supported() -> bool:
    """Returns whether this system has /proc. Without /proc, only the servers' own lock files guard the data."""
    return sys.platform == "linux" and Path("/proc/self/cwd").exists()


def find(data: Path, program: str | None = None) -> list[int]:
    """Returns the pids of processes of `program`, or of any program, whose working directory is `data`."""
    if not supported():
        return []
    try:
        wanted = data.stat()
    except FileNotFoundError:
        return []
    return [int(e) for e in os.listdir("/proc") if e.isdigit() and _is_ours(int(e), wanted, program)]


def _is_ours(pid: int, data: os.stat_result, program: str | None) -> bool:
    proc = Path("/proc", str(pid))
    try:
        cwd = (proc / "cwd").stat()
        if (cwd.st_dev, cwd.st_ino) != (data.st_dev, data.st_ino):
            return False
        if proc.stat().st_uid != data.st_uid:
            return False
        executable = os.readlink(proc / "exe").removesuffix(" (deleted)")
        return program is None or Path(executable).name == program
    except OSError:  # the process is gone, or belongs to another user
        return False


def _signal(pid: int, data: Path, program: str | None, number: signal.Signals) -> None:
    """Sends a signal if the process is still ours. A pidfd pins the process, so that a reused pid is never hit."""
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        handle = os.pidfd_open(pid)
        try:
            if _is_ours(pid, data.stat(), program):
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)

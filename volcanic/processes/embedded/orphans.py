"""Server processes that a killed runner left behind: found by where they run, and stopped only when provably ours.

Both servers make their data directory their working directory and keep it, as do PostgreSQL's children. A process is
taken for ours when its working directory is that very directory, its program has the server's name and its user is the
directory's owner. A pid in a file proves nothing: after a crash it may belong to anybody.
"""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from volcanic.processes.embedded.paths import EmbeddedError

# What is done about a server without a runner: seconds to wait, then the signal that ends the wait. The kernel has told
# it to stop when its runner died, and a fast shutdown may have much to write, so the first signal says the same again.
_STEPS = {
    "postgres": ((2.0, signal.SIGINT), (60.0, signal.SIGQUIT), (10.0, signal.SIGKILL)),
    "valkey-server": ((2.0, signal.SIGTERM), (60.0, signal.SIGKILL)),
}
_LAST_WAIT = 10.0


def clear(data: Path, program: str) -> None:
    """Returns when no process of `program` runs in the directory `data`, having stopped those that would not go.

    Blocks while they shut down. Raises EmbeddedError when one of them cannot be stopped.
    """
    for patience, number in _STEPS[program]:
        if _gone(data, program, patience):
            return
        for pid in _leaders(find(data, program)):
            _signal(pid, data, program, number)
    if not _gone(data, program, _LAST_WAIT):
        raise EmbeddedError(f"{program} (processes {find(data, program)}) still runs on {data} and cannot be stopped")


def _gone(data: Path, program: str, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while find(data, program):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _leaders(pids: list[int]) -> list[int]:
    """Those of `pids` whose parent is not among them: PostgreSQL's children take no orders from outside."""
    return [pid for pid in pids if _parent(pid) not in pids]


def _parent(pid: int) -> int:
    try:
        # The name in brackets may itself hold spaces and brackets.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def supported() -> bool:
    """True where processes can be looked at: elsewhere the servers' own guards have to do."""
    return sys.platform == "linux" and Path("/proc/self/cwd").exists()


def find(data: Path, program: str) -> list[int]:
    """Pids of processes of `program` whose working directory is `data`."""
    if not supported():
        return []
    try:
        wanted = data.stat()
    except FileNotFoundError:
        return []
    return [int(e) for e in os.listdir("/proc") if e.isdigit() and _is_ours(int(e), wanted, program)]


def _is_ours(pid: int, data: os.stat_result, program: str) -> bool:
    proc = Path("/proc", str(pid))
    try:
        cwd = (proc / "cwd").stat()
        if (cwd.st_dev, cwd.st_ino) != (data.st_dev, data.st_ino):
            return False
        executable = os.readlink(proc / "exe").removesuffix(" (deleted)")
        return Path(executable).name == program and proc.stat().st_uid == data.st_uid
    except OSError:  # gone meanwhile, or another user's: not ours either way
        return False


def _signal(pid: int, data: Path, program: str, number: signal.Signals) -> None:
    """Signals a process that is still ours once it is pinned, so that a reused pid is never hit."""
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        handle = os.pidfd_open(pid)
        try:
            if _is_ours(pid, data.stat(), program):
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)

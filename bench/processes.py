"""Measured programs: starts and ends them, and reads their memory and processor time.

Each program runs in a session of its own. The kernel ends the program when this process dies.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from volcanic.processes.supervisor.spec import Spec

PROJECT = Path(__file__).resolve().parent.parent
_PATIENCE = 60.0  # seconds


class BenchError(Exception):
    """The benchmark cannot go on. The message gives the reason."""


@contextmanager
def program(name: str, *arguments: str, env: Mapping[str, str], log: Path) -> Iterator[int]:
    """Runs `python ARGUMENTS` during the block, with its output in `log`. Yields its process id."""
    spec = Spec(name=name, argv=(sys.executable, *arguments), env=env, cwd=PROJECT)
    with log.open("ab") as output:
        process = subprocess.Popen(
            spec.command(), stdin=subprocess.DEVNULL, stdout=output, stderr=output, **spec.options()
        )
    try:
        yield process.pid
        if process.poll() is not None:
            raise BenchError(f"{name} ended by itself with code {process.returncode}; see {log}")
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def web_server(server: str, application: str, *, env: Mapping[str, str], log: Path) -> Iterator[tuple[int, int]]:
    """Serves an ASGI application with one process of uvicorn or daphne. Yields its process id and its port."""
    port = _free_port()
    arguments = {
        "uvicorn": (
            *("-m", "uvicorn", application, "--host", "127.0.0.1", "--port", str(port)),
            *("--loop", "uvloop", "--http", "httptools", "--log-level", "warning", "--no-access-log"),
        ),
        "daphne": ("-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "-v", "0", application),
    }[server]
    with program(server, *arguments, env={**env, "PORT": str(port)}, log=log) as pid:
        _wait_for(port, pid, log)
        yield pid, port


@contextmanager
def program_on_port(name: str, *arguments: str, log: Path) -> Iterator[tuple[int, int]]:
    """Runs `python ARGUMENTS PORT` during the block, after it listens. Yields its process id and its port."""
    port = _free_port()
    with program(name, *arguments, str(port), env=os.environ, log=log) as pid:
        _wait_for(port, pid, log)
        yield pid, port


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, pid: int, log: Path) -> None:
    give_up = time.monotonic() + _PATIENCE
    while time.monotonic() < give_up and _lives(pid):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise BenchError(f"nothing listens on the port; see {log}")


def _lives(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def cpu_seconds(pids: Mapping[str, int]) -> float:
    """Returns the processor time in seconds of the named processes, their children and the embedded servers so far.

    Returns 0.0 on systems without /proc.
    """
    members = {pid for group in _groups(pids).values() for pid in group}
    return sum(_cpu(pid) for pid in members)


def _cpu(pid: int) -> float:
    """Returns the processor time of a process and of its ended children, in seconds."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _groups(pids: Mapping[str, int]) -> dict[str, list[int]]:
    """Returns the measured processes by name: the named ones, and the embedded servers, which are our children."""
    if not Path("/proc/self/smaps_rollup").exists():
        return {}
    groups = {name: _tree(pid) for name, pid in pids.items()}
    for child in _children(os.getpid()):
        name = _name(child)
        if name in ("postgres", "valkey-server"):
            groups[name.removesuffix("-server")] = _tree(child)
    return groups


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def memory_of(pids: Mapping[str, int]) -> dict[str, tuple[float, float]]:
    """Returns RSS and PSS in MB, by name: of the named processes with their children, and of the embedded servers."""
    return {name: _sum(members) for name, members in _groups(pids).items()}


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, file.read_text().split())
        except OSError:  # it ended meanwhile
            continue
    return found


def _tree(pid: int) -> list[int]:
    return [pid, *(member for child in _children(pid) for member in _tree(child))]


def _sum(pids: list[int]) -> tuple[float, float]:
    rss = pss = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:  # it ended meanwhile
            continue
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        rss += int(fields["Rss"].split()[0])
        pss += int(fields["Pss"].split()[0])
    return rss / 1024, pss / 1024

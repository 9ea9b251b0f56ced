"""Ownership of a folder's servers: one owner process runs them, any number of other processes use them.

Two lock files in `var` decide. The kernel releases both locks when their holder dies:

- `embedded.lock` is held exclusively by the owner, from before the first server starts until the last server is gone.
- `embedded.users` is held shared by each process that uses the owner's servers. An owner whose `running` block ends
  takes this lock exclusively before it stops the servers, and so waits for the other processes. `Embedded.stop` does
  not wait, since a user who stops `make up` wants the servers to stop.
"""

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from volcanic.processes.embedded import orphans, servers
from volcanic.processes.embedded.binaries import locate
from volcanic.processes.embedded.paths import STATE_ROOT, EmbeddedError, Paths, Urls, find, make_var, prepare
from volcanic.processes.supervisor.spec import Spec

_POLL = 0.03  # seconds
_PATIENCE = 300.0  # seconds for a running server to become ready: crash recovery may read a lot
_SOON = 5.0  # seconds within which a new owner has noted its servers in the lock file
_LONGEST_LOG = 1_000_000  # bytes; a longer log of a server is emptied at the next start


class Embedded:
    """The servers of one folder, run and restarted from one event loop."""

    def __init__(
        self,
        var: Path,
        *,
        postgres: bool = True,
        valkey: bool = True,
        durable: bool = True,
        emit: Callable[[str, str], None] | None = None,
    ) -> None:
        """`emit` is called for each line that a server prints, with the server's name and the line."""
        from volcanic.processes.supervisor.group import Supervisor

        self._paths = find(var)
        self._wanted = (postgres, valkey, durable)
        self._group = Supervisor(emit or _ignore)
        self._lock: int | None = None

    async def start(self) -> Urls:
        """Starts the servers and returns their URLs once the servers answer.

        Raises EmbeddedError when another process runs the folder's servers, and GaveUp when a server cannot be kept
        alive. Servers that were started are stopped in both cases.
        """
        self._lock = _own(self._paths, _names(*self._wanted[:2]))
        if self._lock is None:
            raise EmbeddedError(_held(self._paths))
        try:
            specs = await asyncio.to_thread(_specs, self._paths, *self._wanted)
            self._group.start(*specs)
            await self._group.wait_ready()
        except BaseException:
            await self.stop()
            raise
        return self._paths.urls

    async def supervise(self) -> None:
        """Restarts servers that die, and does not return. Raises GaveUp when a server died too often."""
        await self._group.supervise()

    async def stop(self) -> None:
        """Stops the servers and releases the folder. May be called again."""
        await self._group.stop()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def hasten(self) -> None:
        """Shortens the grace periods of a stop."""
        self._group.hasten()

    def pids(self) -> dict[str, int]:
        """Returns the process id of each running server, by the server's name."""
        return {child.spec.name: child.pid for child in self._group.children if child.pid is not None}


def _ignore(_name: str, _line: str) -> None:
    """Drops a server's line."""


@contextmanager
def share(paths: Paths, *, postgres: bool, valkey: bool, durable: bool) -> Iterator[Urls]:
    """See `volcanic.processes.embedded.running`."""
    began = time.monotonic()
    wanted = _names(postgres, valkey)
    while True:
        owned = _own(paths, wanted)
        if owned is not None:
            try:
                with _served(paths, _specs(paths, postgres, valkey, durable)):
                    yield paths.urls
            finally:
                os.close(owned)
            return
        used = _use(paths, wanted)
        if used is not None:
            try:
                yield paths.urls
            finally:
                os.close(used)
            return
        _check_patience(paths, wanted, time.monotonic() - began)
        time.sleep(_POLL)


def _check_patience(paths: Paths, wanted: list[str], waited: float) -> None:
    """Raises EmbeddedError when the owner does not run a wanted server, or its servers did not answer for minutes."""
    if waited > _PATIENCE:
        raise EmbeddedError(f"{_held(paths)} They do not answer.")
    if waited > _SOON and (lacking := set(wanted) - set(_note(paths)[1:])):
        raise EmbeddedError(f"{_held(paths)} It does not run {' and '.join(sorted(lacking))}.")


def remove(paths: Paths) -> None:
    """See `volcanic.processes.embedded.remove`."""
    if not paths.var.is_dir():
        return
    lock = _own(paths, [])
    if lock is None:
        raise EmbeddedError(_held(paths))
    try:
        orphans.clear(paths.postgres, "postgres")
        orphans.clear(paths.valkey, "valkey-server")
        for folder in (paths.postgres, paths.valkey, paths.sockets, *servers.stop_unfinished(paths)):
            if folder.exists():
                shutil.rmtree(folder)
        for log in ("postgres.log", "valkey.log"):
            (paths.var / log).unlink(missing_ok=True)
        for folder in {paths.base, paths.sockets.parent}:
            if STATE_ROOT in folder.parents:
                folder.rmdir()
        paths.users_lock.unlink(missing_ok=True)
        paths.owner_lock.unlink(missing_ok=True)
    finally:
        os.close(lock)


def _specs(paths: Paths, postgres: bool, valkey: bool, durable: bool) -> list[Spec]:
    """Returns the specs of the wanted servers, after creating their folders."""
    if not postgres and not valkey:
        return []
    prepare(paths)
    binaries = locate(paths.account)
    wanted = []
    if postgres:
        wanted.append(servers.postgres_spec(paths, binaries, durable=durable))
    if valkey:
        wanted.append(servers.valkey_spec(paths, binaries, durable=durable))
    return wanted


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _names(postgres: bool, valkey: bool) -> list[str]:
    return [name for name, wanted in (("postgres", postgres), ("valkey", valkey)) if wanted]


def _own(paths: Paths, services: list[str]) -> int | None:
    """Returns the descriptor of the owner's lock; None while another process holds the lock.

    Closing the descriptor releases the lock. This process' pid and its servers are noted in the file, for messages
    only: the lock alone decides.
    """
    make_var(paths.var)
    lock = _open(paths.owner_lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    if not _is_current(lock, paths.owner_lock):
        os.close(lock)
        return None
    os.ftruncate(lock, 0)
    os.pwrite(lock, " ".join([str(os.getpid()), *services]).encode(), 0)
    return lock


def _is_current(lock: int, path: Path) -> bool:
    """Returns False if the file was removed between opening and locking."""
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False


def _note(paths: Paths) -> list[str]:
    """Returns the owner's note in the lock file: the owner's pid, then the names of its servers."""
    try:
        return paths.owner_lock.read_text().split() or ["?"]
    except OSError:
        return ["?"]


def _held(paths: Paths) -> str:
    return (
        f"{paths.var} is in use: process {_note(paths)[0]} runs its servers. "
        "Stop that process, or set VOLCANIC_VAR to another folder."
    )


def _use(paths: Paths, wanted: list[str]) -> int | None:
    """Returns the descriptor of a shared lock on the servers of another process; None if they do not answer now."""
    lock = _open(paths.users_lock)
    fcntl.flock(lock, fcntl.LOCK_SH)  # blocks while an owner stops its servers
    ready = {"postgres": servers.postgres_ready, "valkey": servers.valkey_ready}
    if _is_current(lock, paths.users_lock) and all(ready[name](paths.sockets) for name in wanted):
        return lock
    os.close(lock)
    return None


@contextmanager
def _served(paths: Paths, specs: list[Spec]) -> Iterator[None]:
    """Runs the servers during the block. Afterwards waits for the processes that share the servers, and stops them."""
    owner = os.getpid()
    started: list[tuple[Spec, subprocess.Popen[bytes]]] = []
    with ExitStack() as locks, ExitStack() as stack:
        for spec in specs:
            if spec.prepare is not None:
                spec.prepare()
            process = _start(paths, spec)
            started.append((spec, process))
            stack.callback(_stop, spec, process, owner)
        for spec, process in started:
            _wait_ready(paths, spec, process)
        stack.callback(_wait_for_users, paths, locks, owner)
        yield


def _start(paths: Paths, spec: Spec) -> subprocess.Popen[bytes]:
    log = os.open(_log(paths, spec), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if os.fstat(log).st_size > _LONGEST_LOG:
            os.ftruncate(log, 0)
        return subprocess.Popen(  # noqa: S603
            spec.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, **spec.options()
        )
    finally:
        os.close(log)


def _log(paths: Paths, spec: Spec) -> Path:
    return paths.var / f"{spec.name}.log"


def _wait_ready(paths: Paths, spec: Spec, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while spec.probe is not None and not spec.probe():
        if process.poll() is not None:
            lines = _log(paths, spec).read_text(errors="replace").splitlines()[-10:]
            raise EmbeddedError("\n".join([f"{spec.name} ended with code {process.returncode}:", *lines]))
        if time.monotonic() > deadline:
            raise EmbeddedError(f"{spec.name} does not answer; see {_log(paths, spec)}")
        time.sleep(_POLL)


def _stop(spec: Spec, process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:  # a fork of the owner must not stop the owner's servers
        return
    process.send_signal(spec.stop_signal)
    try:
        process.wait(spec.grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for_users(paths: Paths, locks: ExitStack, owner: int) -> None:
    """Waits until no process shares the servers. `locks` then keeps new users out until the servers are stopped."""
    if os.getpid() != owner:
        return
    lock = _open(paths.users_lock)
    locks.callback(os.close, lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.stderr.write(f"waiting for other processes that use the servers of {paths.var}\n")
        fcntl.flock(lock, fcntl.LOCK_EX)

"""Who runs the servers of a folder: one owner, and any number of processes that use what it runs.

Two lock files in `var` settle it, and the kernel releases both when their holder dies in whatever way:

- `embedded.lock` is held exclusively by the owner, from before the first server starts until the last one is gone.
- `embedded.users` is held shared by each process that uses the owner's servers. An owner whose `running` block ends
  takes it exclusively before it stops the servers, and so waits for the others; `Embedded.stop` does not wait: whoever
  stops `make up` means it.
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

from volcanic.embedded import orphans, servers
from volcanic.embedded.binaries import locate
from volcanic.embedded.places import STATE_ROOT, EmbeddedError, Places, Urls, find, make_var, prepare
from volcanic.supervisor.spec import Spec

_POLL = 0.03  # seconds
_PATIENCE = 300.0  # seconds for a server that lives but is not ready: crash recovery may have much to read
_SOON = 5.0  # seconds within which a new owner has written down what it runs
_LONGEST_LOG = 1_000_000  # bytes, then a server's log is begun anew


class Embedded:
    """The servers of one folder, run and restarted from an event loop. Not for two event loops at once."""

    def __init__(
        self,
        var: Path,
        *,
        postgres: bool = True,
        valkey: bool = True,
        durable: bool = True,
        emit: Callable[[str, str], None] | None = None,
    ) -> None:
        """`emit` takes each line that a server prints: the server's name, and the line."""
        from volcanic.supervisor.group import Supervisor

        self._places = find(var)
        self._wanted = (postgres, valkey, durable)
        self._group = Supervisor(emit or _ignore)
        self._lock: int | None = None

    async def start(self) -> Urls:
        """Returns when the servers answer. Raises EmbeddedError when another instance holds the folder, GaveUp when
        a server cannot be kept alive; what was started is then stopped.
        """
        self._lock = _own(self._places, _names(*self._wanted[:2]))
        if self._lock is None:
            raise EmbeddedError(_held(self._places))
        try:
            specs = await asyncio.to_thread(_specs, self._places, *self._wanted)
            self._group.start(*specs)
            await self._group.wait_ready()
        except BaseException:
            await self.stop()
            raise
        return self._places.urls

    async def supervise(self) -> None:
        """Returns never, while the servers live. Raises GaveUp when one of them died too often."""
        await self._group.supervise()

    async def stop(self) -> None:
        """Stops the servers and gives the folder free. May be called again."""
        await self._group.stop()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def hasten(self) -> None:
        """Shortens what remains of a stop."""
        self._group.hasten()

    def pids(self) -> dict[str, int]:
        """The process of each server that runs now, by its name."""
        return {child.spec.name: child.pid for child in self._group.children if child.pid is not None}


def _ignore(_name: str, _line: str) -> None:
    """Takes the servers' lines when nobody wants them."""


@contextmanager
def share(places: Places, *, postgres: bool, valkey: bool, durable: bool) -> Iterator[Urls]:
    """See `volcanic.embedded.running`."""
    began = time.monotonic()
    wanted = _names(postgres, valkey)
    while True:
        owned = _own(places, wanted)
        if owned is not None:
            try:
                with _served(places, _specs(places, postgres, valkey, durable)):
                    yield places.urls
            finally:
                os.close(owned)
            return
        used = _use(places, wanted)
        if used is not None:
            try:
                yield places.urls
            finally:
                os.close(used)
            return
        _check_patience(places, wanted, time.monotonic() - began)
        time.sleep(_POLL)


def _check_patience(places: Places, wanted: list[str], waited: float) -> None:
    """Raises EmbeddedError when the owner will not give what is wanted, or has not for minutes."""
    if waited > _PATIENCE:
        raise EmbeddedError(f"{_held(places)} They do not answer.")
    if waited > _SOON and (lacking := set(wanted) - set(_note(places)[1:])):
        raise EmbeddedError(f"{_held(places)} It does not run {' and '.join(sorted(lacking))}.")


def remove(places: Places) -> None:
    """See `volcanic.embedded.remove`."""
    if not places.var.is_dir():
        return
    lock = _own(places, [])
    if lock is None:
        raise EmbeddedError(_held(places))
    try:
        orphans.clear(places.postgres, "postgres")
        orphans.clear(places.valkey, "valkey-server")
        for folder in (places.postgres, places.valkey, places.sockets, *places.base.glob("postgres.new-*")):
            if folder.exists():
                shutil.rmtree(folder)
        for log in ("postgres.log", "valkey.log"):
            (places.var / log).unlink(missing_ok=True)
        for folder in {places.base, places.sockets.parent}:
            if STATE_ROOT in folder.parents:
                folder.rmdir()
        places.users_lock.unlink(missing_ok=True)
        places.owner_lock.unlink(missing_ok=True)
    finally:
        os.close(lock)


def _specs(places: Places, postgres: bool, valkey: bool, durable: bool) -> list[Spec]:
    """What to run, its folders made."""
    if not postgres and not valkey:
        return []
    prepare(places)
    binaries = locate(places.account)
    wanted = []
    if postgres:
        wanted.append(servers.postgres_spec(places, binaries, durable=durable))
    if valkey:
        wanted.append(servers.valkey_spec(places, binaries, durable=durable))
    return wanted


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _names(postgres: bool, valkey: bool) -> list[str]:
    return [name for name, wanted in (("postgres", postgres), ("valkey", valkey)) if wanted]


def _own(places: Places, services: list[str]) -> int | None:
    """The owner's lock, or None while another process has it. Closing the descriptor releases it.

    Notes in the file who we are and what we run: for messages only, the lock alone decides.
    """
    make_var(places.var)
    lock = _open(places.owner_lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    if not _is_current(lock, places.owner_lock):
        os.close(lock)
        return None
    os.ftruncate(lock, 0)
    os.pwrite(lock, " ".join([str(os.getpid()), *services]).encode(), 0)
    return lock


def _is_current(lock: int, path: Path) -> bool:
    """False when the file was removed between opening and locking it."""
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False


def _note(places: Places) -> list[str]:
    """What the owner wrote into its lock: its pid, then the servers it runs."""
    try:
        return places.owner_lock.read_text().split() or ["?"]
    except OSError:
        return ["?"]


def _held(places: Places) -> str:
    return (
        f"{places.var} is in use: process {_note(places)[0]} runs its servers. "
        "Stop that one, or set VOLCANIC_VAR to another folder."
    )


def _use(places: Places, wanted: list[str]) -> int | None:
    """A share in the servers that another process runs, or None when they do not answer at this moment."""
    lock = _open(places.users_lock)
    fcntl.flock(lock, fcntl.LOCK_SH)  # blocks while an owner stops its servers
    ready = {"postgres": servers.postgres_ready, "valkey": servers.valkey_ready}
    if _is_current(lock, places.users_lock) and all(ready[name](places.sockets) for name in wanted):
        return lock
    os.close(lock)
    return None


@contextmanager
def _served(places: Places, specs: list[Spec]) -> Iterator[None]:
    """Runs the servers for the time of the block, then waits for the processes that share them."""
    owner = os.getpid()
    started: list[tuple[Spec, subprocess.Popen[bytes]]] = []
    with ExitStack() as locks, ExitStack() as stack:
        for spec in specs:
            if spec.prepare is not None:
                spec.prepare()
            process = _start(places, spec)
            started.append((spec, process))
            stack.callback(_stop, spec, process, owner)
        for spec, process in started:
            _wait_ready(places, spec, process)
        stack.callback(_wait_for_users, places, locks, owner)
        yield


def _start(places: Places, spec: Spec) -> subprocess.Popen[bytes]:
    log = os.open(_log(places, spec), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if os.fstat(log).st_size > _LONGEST_LOG:
            os.ftruncate(log, 0)
        return subprocess.Popen(  # noqa: S603
            spec.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, **spec.options()
        )
    finally:
        os.close(log)


def _log(places: Places, spec: Spec) -> Path:
    return places.var / f"{spec.name}.log"


def _wait_ready(places: Places, spec: Spec, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while spec.probe is not None and not spec.probe():
        if process.poll() is not None:
            lines = _log(places, spec).read_text(errors="replace").splitlines()[-10:]
            raise EmbeddedError("\n".join([f"{spec.name} ended with code {process.returncode}:", *lines]))
        if time.monotonic() > deadline:
            raise EmbeddedError(f"{spec.name} does not answer; see {_log(places, spec)}")
        time.sleep(_POLL)


def _stop(spec: Spec, process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:  # a fork of the owner leaves its block: the servers are not its own
        return
    process.send_signal(spec.stop_signal)
    try:
        process.wait(spec.grace)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for_users(places: Places, locks: ExitStack, owner: int) -> None:
    """Returns when nobody shares the servers any more; `locks` then keeps everyone out until they are stopped."""
    if os.getpid() != owner:
        return
    lock = _open(places.users_lock)
    locks.callback(os.close, lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.stderr.write(f"waiting for other processes that use the servers of {places.var}\n")
        fcntl.flock(lock, fcntl.LOCK_EX)

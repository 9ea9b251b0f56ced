"""Programs of the two servers: setup of their data, command lines, readiness probes."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from volcanic.processes.embedded import orphans
from volcanic.processes.embedded.binaries import Binaries
from volcanic.processes.embedded.paths import (
    DATABASE,
    POSTGRES_SOCKET,
    VALKEY_SOCKET,
    EmbeddedError,
    Paths,
    check_private,
)
from volcanic.processes.supervisor.spec import Spec

# The servers get a fixed environment: an inherited PGOPTIONS, LC_ALL or preloaded library would change them.
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
_PROTOCOL = 196608  # PostgreSQL's protocol 3.0
_LAST = {b"E", b"Z"}  # message types: error, ready for queries
_GOODBYE = b"X\0\0\0\4"
_NO_SUCH_DATABASE = "3D000"
_POSTGRES_GRACE = 120.0  # seconds; a fast shutdown writes all data first
_VALKEY_GRACE = 30.0
_HASTY_GRACE = 10.0
_UNFINISHED = "postgres.new-"  # begins the name of a folder in which initdb has not ended


def postgres_spec(paths: Paths, binaries: Binaries, *, durable: bool) -> Spec:
    """Returns the spec of PostgreSQL, which listens on a unix socket only. Its data is prepared before each start."""
    options = {
        "listen_addresses": "",
        "unix_socket_directories": _quoted(paths.sockets),
        "unix_socket_permissions": "0700",
        "max_connections": "200",
        "shared_buffers": "128MB",
        "logging_collector": "off",
        "log_destination": "stderr",
        "log_checkpoints": "off",
    }
    if not durable:
        options |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    return Spec(
        name="postgres",
        argv=(str(binaries.postgres), "-D", str(paths.postgres), *settings),
        env=_ENVIRONMENT,
        cwd=Path("/"),
        account=paths.account,
        stop_signal=signal.SIGINT,  # fast shutdown: ends open connections and writes all data
        death_signal=signal.SIGINT,
        grace=_POSTGRES_GRACE,
        hasty_grace=_HASTY_GRACE,
        prepare=partial(prepare_postgres, paths, binaries, durable=durable),
        probe=partial(postgres_ready, paths.sockets, make_database=True),
    )


def valkey_spec(paths: Paths, binaries: Binaries, *, durable: bool) -> Spec:
    """Returns the spec of Valkey, which listens on a unix socket only. If durable, it appends every write to a file."""
    options = {
        "port": "0",
        "unixsocket": str(paths.sockets / VALKEY_SOCKET),
        "unixsocketperm": "700",
        "dir": str(paths.valkey),
        "databases": "64",
        "appendonly": "yes" if durable else "no",
        "save": "",
        "daemonize": "no",
        "loglevel": "warning",
    }
    return Spec(
        name="valkey",
        argv=(str(binaries.valkey), *(part for name, value in options.items() for part in (f"--{name}", value))),
        env=_ENVIRONMENT,
        cwd=Path("/"),
        account=paths.account,
        stop_signal=signal.SIGTERM,
        death_signal=signal.SIGTERM,
        grace=_VALKEY_GRACE,
        hasty_grace=_HASTY_GRACE,
        prepare=partial(prepare_valkey, paths),
        probe=partial(valkey_ready, paths.sockets),
    )


def prepare_postgres(paths: Paths, binaries: Binaries, *, durable: bool) -> None:
    """Creates the data directory on the first start, and removes leftovers of a crash.

    The caller must hold the owner's lock. Raises EmbeddedError when the data cannot be used.
    """
    data = paths.postgres
    for leftover in stop_unfinished(paths):
        shutil.rmtree(leftover, ignore_errors=True)
    if not (data / "PG_VERSION").exists():
        _initialise(paths, binaries, durable=durable)
    uid = paths.account.uid if paths.account else os.geteuid()
    check_private(data, uid)
    _check_version(data)
    orphans.clear(data, "postgres")
    if orphans.supported():
        # No server runs here, so these files name a process that is gone, or another program that now has its pid. The
        # server would mistake that program for a running server and refuse to start.
        for stale in (data / "postmaster.pid", paths.sockets / f"{POSTGRES_SOCKET}.lock"):
            stale.unlink(missing_ok=True)


def stop_unfinished(paths: Paths) -> list[Path]:
    """Kills what interrupted runs of initdb started, which may still write for a moment, and returns their folders.

    The caller must hold the owner's lock. Raises EmbeddedError when a process cannot be stopped.
    """
    folders = list(paths.base.glob(f"{_UNFINISHED}*"))
    for folder in folders:
        orphans.kill(folder)
    return folders


def prepare_valkey(paths: Paths) -> None:
    """Stops a server that a killed runner left on the data. The caller must hold the owner's lock."""
    orphans.clear(paths.valkey, "valkey-server")


def _check_version(data: Path) -> None:
    version = (data / "PG_VERSION").read_text().strip()
    if version != "18":
        raise EmbeddedError(
            f"{data} was created by PostgreSQL {version}, but this is 18: dump the data with the old version and load "
            "the dump with this version"
        )


def _initialise(paths: Paths, binaries: Binaries, *, durable: bool) -> None:
    """Runs initdb in a directory with a temporary name, which is renamed once it is complete."""
    if paths.postgres.exists():
        raise EmbeddedError(f"{paths.postgres} exists but holds no database: move it away")
    new = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=paths.base))  # mode 0700
    if paths.account:
        os.chown(new, paths.account.uid, paths.account.gid)
    spec = Spec(
        name="initdb",
        argv=(
            str(binaries.initdb),
            *("-D", str(new), "--username", DATABASE, "--encoding=UTF8", "--locale=C.UTF-8", "--auth=trust"),
            *("--no-instructions", *(() if durable else ("--no-sync",))),
        ),
        account=paths.account,
    )
    done = subprocess.run(  # noqa: S603
        spec.command(),
        env=_ENVIRONMENT,
        cwd=new,  # so that what initdb starts is found by its working directory from its first moment
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise EmbeddedError(f"initdb failed: {(done.stderr + done.stdout).decode(errors='replace').strip()}")
    new.rename(paths.postgres)
    if durable:
        folder = os.open(paths.base, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _quoted(path: Path) -> str:
    """Returns a path quoted for unix_socket_directories, which is a list separated by commas."""
    return '"' + str(path).replace('"', '""') + '"'


def postgres_ready(sockets: Path, *, make_database: bool = False) -> bool:
    """Returns whether the server accepts connections to the database. With `make_database`, creates it if missing."""
    state = _postgres_state(sockets)
    if state == _NO_SUCH_DATABASE and make_database:
        _create_database(sockets)
        state = _postgres_state(sockets)
    return state == ""


def _postgres_state(sockets: Path) -> str | None:
    """Returns a connection's result: "" for success, an SQLSTATE such as 57P03 (starting up), None for no answer."""
    body = struct.pack("!I", _PROTOCOL)
    body += b"".join(word.encode() + b"\0" for word in ("user", DATABASE, "database", DATABASE)) + b"\0"
    question = struct.pack("!I", len(body) + 4) + body
    answer = _ask(
        sockets / POSTGRES_SOCKET, question, enough=lambda got: not _LAST.isdisjoint(_messages(got)), goodbye=_GOODBYE
    )
    messages = _messages(answer)
    if b"E" in messages:
        fields = messages[b"E"].split(b"\0")
        return next((field[1:].decode() for field in fields if field[:1] == b"C"), "unknown")
    return "" if b"Z" in messages else None


def _messages(answer: bytes) -> dict[bytes, bytes]:
    """Returns the complete messages in a piece of PostgreSQL's protocol: the last body of each message type."""
    found = {}
    while len(answer) >= 5:
        end = 1 + int(struct.unpack("!I", answer[1:5])[0])
        if len(answer) < end:
            break
        found[answer[:1]] = answer[5:end]
        answer = answer[end:]
    return found


def _create_database(sockets: Path) -> None:
    import psycopg

    # autocommit: a database cannot be created inside a transaction
    with (
        psycopg.connect(host=str(sockets), user=DATABASE, dbname="postgres", autocommit=True) as connection,
        suppress(psycopg.errors.DuplicateDatabase),
    ):
        connection.execute(f"CREATE DATABASE {DATABASE}")


def valkey_ready(sockets: Path) -> bool:
    """Returns whether the server answers, which it does once its data is loaded."""
    answer = _ask(sockets / VALKEY_SOCKET, b"PING\r\n", enough=lambda got: got.endswith(b"\r\n"))
    return answer == b"+PONG\r\n"


def _ask(path: Path, question: bytes, *, enough: Callable[[bytes], bool], goodbye: bytes = b"") -> bytes:
    """Sends bytes to a unix socket and returns the answer, read until `enough` is true for it.

    Returns the incomplete answer after an error, or after 5 seconds without data.
    """
    answer = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5.0)
        try:
            connection.connect(str(path))
            connection.sendall(question)
            while not enough(answer):
                piece = connection.recv(4096)
                if not piece:
                    break
                answer += piece
            connection.sendall(goodbye)
        except OSError:
            return answer
    return answer

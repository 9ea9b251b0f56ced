"""Where the embedded servers keep their data and sockets, and as which user they run.

As an ordinary user everything is under `var`: `postgres/`, `valkey/` and `run/` (the sockets), each 0700. Only when the
socket's path would be too long for the system, or has characters that clients trip over, are the sockets kept in
`/tmp/volcanic-<uid>/<hash of var>/`.

PostgreSQL refuses to run as root, so for root both servers run as `nobody`, or as the user that `EMBEDDED_USER` names.
When that user cannot get through to `var` (a parent folder such as /root is closed to it), the data and the sockets
are kept in `/var/lib/volcanic/<hash of var>/` instead: no permission of a folder that is not ours is ever changed.
"""

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

STATE_ROOT = Path("/var/lib/volcanic")
DATABASE = "volcanic"
# sun_path has 108 bytes on Linux and 104 on macOS, and PostgreSQL adds `.lock` to its socket's name.
LONGEST_SOCKET_PATH = 98
# libpq takes a comma for the end of a host, and not every client decodes every character of a URL.
_PLAIN = re.compile(r"[A-Za-z0-9 ._/-]+")
POSTGRES_SOCKET = ".s.PGSQL.5432"
VALKEY_SOCKET = "valkey.sock"


class EmbeddedError(RuntimeError):
    """The embedded servers cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Urls:
    """How to reach one folder's servers: for Django, for redis-py and channels, and for Celery."""

    database_url: str
    redis_url: str
    broker_url: str


@dataclass(frozen=True)
class Account:
    """The user that the servers run as when we are root."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Paths:
    """All paths of one instance. `var` is the caller's folder, `base` the one that holds the data."""

    var: Path
    base: Path
    sockets: Path
    account: Account | None

    @property
    def postgres(self) -> Path:
        """PostgreSQL's data directory."""
        return self.base / "postgres"

    @property
    def valkey(self) -> Path:
        """Valkey's working directory, which holds its append-only files."""
        return self.base / "valkey"

    @property
    def owner_lock(self) -> Path:
        """Held exclusively by the process that runs the servers, for as long as they run."""
        return self.var / "embedded.lock"

    @property
    def users_lock(self) -> Path:
        """Held shared by each process that uses servers which another one runs."""
        return self.var / "embedded.users"

    @property
    def urls(self) -> Urls:
        """The three URLs; `%` forms keep spaces and slashes of the path."""
        socket = quote(str(self.sockets / VALKEY_SOCKET))
        return Urls(
            database_url=f"postgresql://{DATABASE}@{quote(str(self.sockets), safe='')}/{DATABASE}",
            redis_url=f"unix://{socket}?db=0",
            broker_url=f"redis+socket://{socket}?virtual_host=0",
        )


def find(var: Path) -> Paths:
    """The paths of `var`. Reads permissions along the path, changes nothing."""
    var = Path(os.path.realpath(var))
    key = hashlib.sha256(os.fsencode(var)).hexdigest()[:16]
    account = _account()
    base = var
    if account is not None:
        elsewhere = STATE_ROOT / key
        # Data that is elsewhere already stays there, whatever became of the permissions since.
        if (elsewhere / "postgres").exists() or (elsewhere / "valkey").exists() or not reachable(var, account):
            base = elsewhere
    sockets = base / "run"
    if len(os.fsencode(sockets / POSTGRES_SOCKET)) > LONGEST_SOCKET_PATH or not _PLAIN.fullmatch(str(sockets)):
        # Not the temp dir of the environment: two processes with a different TMPDIR must find each other.
        sockets = STATE_ROOT / key / "run" if account else Path(f"/tmp/volcanic-{os.geteuid()}") / key  # noqa: S108
    return Paths(var=var, base=base, sockets=sockets, account=account)


def reachable(path: Path, account: Account) -> bool:
    """True when `account` may search every folder down to `path`, and `path` itself. What is missing counts as open.

    Decided from owner, group and mode alone: an access list that says otherwise makes the start fail, not unsafe.
    """
    for folder in (*reversed(path.parents), path):
        try:
            status = folder.stat()
        except FileNotFoundError:
            return True
        if status.st_uid == account.uid:
            bit = stat.S_IXUSR
        elif status.st_gid in account.groups:
            bit = stat.S_IXGRP
        else:
            bit = stat.S_IXOTH
        if not status.st_mode & bit:
            return False
    return True


def make_var(var: Path) -> None:
    """Creates `var` when it is missing: private, but as root open to passage for the servers' user."""
    if not var.is_dir():
        var.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o711 if os.geteuid() == 0 else 0o700
        var.mkdir(exist_ok=True)
        var.chmod(mode)  # whatever the umask


def prepare(paths: Paths) -> None:
    """Creates the folders of an instance and refuses those that someone else has made.

    Raises EmbeddedError when data is where it cannot be used, or a folder is not safely ours.
    """
    if paths.base != paths.var:
        if (paths.var / "postgres" / "PG_VERSION").exists():
            user = paths.account.name if paths.account else "?"
            raise EmbeddedError(
                f"{paths.var / 'postgres'} holds data, but the user {user!r}, as whom the servers run, cannot get "
                "through to it. Open the parent folders for passage, or set EMBEDDED_USER."
            )
        _make_open(STATE_ROOT)
        _make_open(paths.base)
    if paths.sockets.parent not in (paths.base, paths.var):
        if paths.account:
            _make_open(STATE_ROOT)
            _make_open(paths.sockets.parent)
        else:
            make_private(paths.sockets.parent, None)
    for folder in (paths.valkey, paths.sockets):
        make_private(folder, paths.account)


def make_private(folder: Path, account: Account | None) -> None:
    """Creates `folder` with mode 0700 for the servers' user; one that is there must be exactly that."""
    uid = account.uid if account else os.geteuid()
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    else:
        folder.chmod(0o700)  # whatever the umask
        if account:
            os.chown(folder, account.uid, account.gid)
    check_private(folder, uid)


def check_private(folder: Path, uid: int) -> None:
    """Raises EmbeddedError unless `folder` is a real folder of user `uid` that nobody else may enter."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise EmbeddedError(f"{folder} is not a folder")
    if status.st_uid != uid:
        raise EmbeddedError(
            f"{folder} belongs to user {status.st_uid}, but the servers run as user {uid}: run as the user that made "
            "it (as root: set EMBEDDED_USER), or delete it"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise EmbeddedError(f"{folder} is open to other users: expected mode 0700")


def _make_open(folder: Path) -> None:
    """Creates a root-owned folder that others may pass through but not list or write."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        pass
    else:
        folder.chmod(0o711)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != 0 or stat.S_IMODE(status.st_mode) & 0o022:
        raise EmbeddedError(f"{folder} must be a folder that belongs to root and only root can write")


def _account() -> Account | None:
    """The servers' user when we are root, else None: they run as we do."""
    if os.geteuid() != 0:
        return None
    import pwd

    name = os.environ.get("EMBEDDED_USER") or "nobody"
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise EmbeddedError(f"EMBEDDED_USER: there is no user {name!r} on this machine") from None
    if entry.pw_uid == 0:
        raise EmbeddedError("EMBEDDED_USER: PostgreSQL does not run as root, name an ordinary user")
    return Account(name, entry.pw_uid, entry.pw_gid, tuple(os.getgrouplist(name, entry.pw_gid)))

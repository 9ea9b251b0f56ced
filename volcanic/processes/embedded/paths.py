"""Paths of the embedded servers' data and sockets, and the user that the servers run as.

For an ordinary user, everything is under `var`: `postgres/`, `valkey/` and `run/` (the sockets), each with mode 0700. A
socket's path can be too long for the system, or have characters that some clients can't handle. Then the sockets are
kept in `/tmp/volcanic-<uid>/<hash of var>/`.

PostgreSQL refuses to run as root. For root, both servers run as `nobody`, or as the user that `EMBEDDED_USER` names.
When that user cannot reach `var` (a parent folder such as /root is closed to it), the data and the sockets are kept in
`/var/lib/volcanic/<hash of var>/`. The permissions of other folders are never changed.
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
# libpq treats a comma as the end of a host, and some clients do not decode all characters of a URL.
_PLAIN = re.compile(r"[A-Za-z0-9 ._/-]+")
POSTGRES_SOCKET = ".s.PGSQL.5432"
VALKEY_SOCKET = "valkey.sock"


class EmbeddedError(RuntimeError):
    """The embedded servers cannot be used. The message gives the reason and a remedy."""


@dataclass(frozen=True)
class Urls:
    """URLs of one folder's servers: for Django, for redis-py and Django Channels, and for Celery."""

    database_url: str
    redis_url: str
    broker_url: str


@dataclass(frozen=True)
class Account:
    """The user that the servers run as when root starts them."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Paths:
    """All paths of one folder's servers. `var` is the caller's folder, `base` the folder with the data."""

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
        """Lock file that the process that runs the servers holds exclusively while the servers run."""
        return self.var / "embedded.lock"

    @property
    def users_lock(self) -> Path:
        """Lock file that each process holds shared while it uses the servers of another process."""
        return self.var / "embedded.users"

    @property
    def urls(self) -> Urls:
        """The three URLs. Special characters in the path, such as spaces, are percent-encoded."""
        socket = quote(str(self.sockets / VALKEY_SOCKET))
        return Urls(
            database_url=f"postgresql://{DATABASE}@{quote(str(self.sockets), safe='')}/{DATABASE}",
            redis_url=f"unix://{socket}?db=0",
            broker_url=f"redis+socket://{socket}?virtual_host=0",
        )


def find(var: Path) -> Paths:
    """Returns the paths of `var`. Reads permissions along the path, changes nothing."""
    var = Path(os.path.realpath(var))
    key = hashlib.sha256(os.fsencode(var)).hexdigest()[:16]
    account = _account()
    base = var
    if account is not None:
        elsewhere = STATE_ROOT / key
        # Existing data under STATE_ROOT stays there, even if the permissions of `var` have changed since.
        if (elsewhere / "postgres").exists() or (elsewhere / "valkey").exists() or not reachable(var, account):
            base = elsewhere
    sockets = base / "run"
    if len(os.fsencode(sockets / POSTGRES_SOCKET)) > LONGEST_SOCKET_PATH or not _PLAIN.fullmatch(str(sockets)):
        # /tmp is fixed, since two processes with a different TMPDIR must find the same sockets.
        sockets = STATE_ROOT / key / "run" if account else Path(f"/tmp/volcanic-{os.geteuid()}") / key  # noqa: S108
    return Paths(var=var, base=base, sockets=sockets, account=account)


def reachable(path: Path, account: Account) -> bool:
    """Returns whether `account` may search every folder down to `path`, and `path` itself.

    A missing folder counts as open. Only owner, group and mode are read. An access list can be stricter: then the start
    of a server fails, which is safe.
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
    """Creates `var` if missing, with mode 0700; for root with mode 0711, to let the servers' user through."""
    if not var.is_dir():
        var.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o711 if os.geteuid() == 0 else 0o700
        var.mkdir(exist_ok=True)
        var.chmod(mode)  # the umask may have removed permissions


def prepare(paths: Paths) -> None:
    """Creates the folders of the servers.

    Raises EmbeddedError when the servers' user cannot reach existing data, or when a folder belongs to another user or
    is open to others.
    """
    if paths.base != paths.var:
        if (paths.var / "postgres" / "PG_VERSION").exists():
            user = paths.account.name if paths.account else "?"
            raise EmbeddedError(
                f"{paths.var / 'postgres'} holds data, but the servers run as the user {user!r}, who cannot reach "
                "that folder. Allow that user to enter the parent folders, or set EMBEDDED_USER."
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
    """Creates `folder` with mode 0700 for the servers' user.

    Raises EmbeddedError for an existing folder of another user or with another mode.
    """
    uid = account.uid if account else os.geteuid()
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    else:
        folder.chmod(0o700)  # the umask may have removed permissions
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
    """Creates a folder of root that other users may pass through but not list or write. Raises EmbeddedError."""
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
    """Returns the servers' user if this process runs as root, else None: the servers run as the current user."""
    if os.geteuid() != 0:
        return None
    import pwd

    name = os.environ.get("EMBEDDED_USER") or "nobody"
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise EmbeddedError(f"EMBEDDED_USER: there is no user {name!r} on this machine") from None
    if entry.pw_uid == 0:
        raise EmbeddedError("EMBEDDED_USER: PostgreSQL does not run as root. Name an ordinary user.")
    return Account(name, entry.pw_uid, entry.pw_gid, tuple(os.getgrouplist(name, entry.pw_gid)))

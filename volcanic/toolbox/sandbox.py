"""Sandbox for commands of the assistant: bubblewrap with the workspace and the system's programs only.

The sandbox has no network, no processes of others, no inherited environment and no files of this machine except for
/usr and similar folders. In a caller's turn, the workspace's top level, the owner's files and names that begin with a
dot are read-only, and the inbox contains only the caller's own folder. Mounts enforce this, not checks of names: the
whole workspace is mounted read-only, and its folders are mounted writable on top. So a file that the owner replaces
during a command is protected like the file before.
"""

import functools
import logging
import os
import shutil
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from volcanic.runtime.base import Inbound
from volcanic.runtime.tools import ToolError
from volcanic.toolbox.paths import MOUNT
from volcanic.toolbox.rules import INBOX, OWNERS_FILES, fold, is_owners

logger = logging.getLogger(__name__)

PROBE_SECONDS = 10
# Limits of the files in /tmp and /dev/shm, which take memory.
TMP_BYTES = 256 * 1024 * 1024
SHM_BYTES = 64 * 1024 * 1024
MAX_FOLDERS = 500

# Environment of the command and of bubblewrap itself. Bubblewrap is the first process in the sandbox, where the command
# can read its environment.
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
    "HOME": "/tmp",  # noqa: S108  the sandbox has a /tmp of its own
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
}

_ISOLATED = (
    *("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"),
    *("--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"),
)
# In order of preference. Some kernels and containers do not allow to disable user namespaces or to mount /proc.
_VARIANTS: tuple[tuple[str, ...], ...] = (
    ("--disable-userns", "--proc", "/proc"),
    ("--proc", "/proc"),
    (),
)
_SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Files of /etc that programs need. They disclose nothing about this machine or its users.
_SYSTEM_FILES = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/ssl/certs", "/etc/mime.types")


@dataclass(frozen=True)
class Sandbox:
    """Bubblewrap on this machine: the command line that starts it, or the reason why it can't be used (`problem`)."""

    start: Sequence[str] = ()
    problem: str = ""

    @property
    def works(self) -> bool:
        """Whether commands can run in the sandbox."""
        return not self.problem


@functools.cache
def sandbox() -> Sandbox:
    """Returns this machine's sandbox. It is tested once for each process, with a command that runs inside."""
    found = _find()
    if not found.works:
        logger.warning("callers' turns have no bash: %s", found.problem)
    return found


def _find() -> Sandbox:
    program = shutil.which("bwrap")
    if program is None:
        return Sandbox(problem="bubblewrap (bwrap) is not installed")
    if shutil.which("bash") is None:
        return Sandbox(problem="bash is not installed")
    problem = ""
    for variant in _VARIANTS:
        start = (program, *_ISOLATED, *variant, *_system())
        problem = _probe([*start, "--remount-ro", "/", "--", "/bin/bash", "-c", 'test -z "$(ls -A /tmp)" && id -u'])
        if not problem:
            # Lower priority, so that a caller's command does not slow down the worker's other turns.
            nice = shutil.which("nice")
            return Sandbox(start=([nice, "-n", "10"] if nice else []) + list(start))
    return Sandbox(problem=f"bubblewrap does not work here: {problem}")


def _probe(command: Sequence[str]) -> str:
    """Runs a command in the sandbox. Returns the error, "" for success."""
    try:
        done = subprocess.run(  # noqa: S603  our own command
            command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    if done.returncode == 0 and done.stdout.strip() == b"1000":
        return ""
    return done.stderr.decode(errors="replace").strip()[:200] or f"exit code {done.returncode}"


def _system() -> list[str]:
    arguments: list[str] = []
    for folder in _SYSTEM_FOLDERS:
        if os.path.islink(folder):
            arguments += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            arguments += ["--ro-bind", folder, folder]
    for file in _SYSTEM_FILES:
        arguments += ["--ro-bind-try", file, file]
    return [
        *arguments,
        *("--dev", "/dev", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108
        *("--size", str(TMP_BYTES), "--tmpfs", "/tmp"),  # noqa: S108
    ]


def mounts(workspace: Path, inbound: Inbound | None) -> list[str]:
    """Returns bubblewrap's arguments that mount the files of the workspace that the turn may see and change.

    Creates the caller's inbox folder if it is missing. Raises ToolError if the workspace can't be protected.
    """
    root = os.path.realpath(workspace)
    return ["--bind", root, MOUNT] if inbound is None else _callers_mounts(root, inbound)


def isolated(mounted: Sequence[str], command: Sequence[str], *, status: int) -> list[str]:
    """Returns the command line that runs `command` in the sandbox. Bubblewrap reports to the descriptor `status`."""
    tail = ("--remount-ro", "/", "--chdir", MOUNT, "--json-status-fd", str(status), "--")
    return [*sandbox().start, *mounted, *tail, *command]


def _callers_mounts(root: str, inbound: Inbound) -> list[str]:
    _refuse_linked(root)
    _make_folder(os.path.join(root, INBOX))
    own = os.path.join(root, inbound.inbox)
    _make_folder(own)
    with os.scandir(root) as entries:
        folders = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    mounts = ["--ro-bind", root, MOUNT]
    for name in [name for name in folders if not is_owners(name)][:MAX_FOLDERS]:
        if fold(name) != INBOX:
            mounts += ["--bind", os.path.join(root, name), f"{MOUNT}/{name}"]
        elif name == INBOX:
            mounts += ["--tmpfs", f"{MOUNT}/{INBOX}", "--bind", own, f"{MOUNT}/{inbound.inbox}"]
            mounts += ["--remount-ro", f"{MOUNT}/{INBOX}"]
        else:  # another spelling of the inbox's name, which the file tools hide too
            mounts += ["--tmpfs", f"{MOUNT}/{name}", "--remount-ro", f"{MOUNT}/{name}"]
    return mounts


def _refuse_linked(root: str) -> None:
    """Raises ToolError if one of the owner's files is a link, or has a second name.

    A mount protects the name at the top of the workspace, but not the file that a link leads to.
    """
    for name in os.listdir(root):
        if fold(name) not in OWNERS_FILES and fold(name) != INBOX and fold(name) != ".volcanic":
            continue
        status = os.lstat(os.path.join(root, name))
        if stat.S_ISLNK(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink > 1):
            raise ToolError(f"Commands can't be run for callers in this workspace: its {name} is a link.")


def _make_folder(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise ToolError("Commands can't be run for callers in this workspace: its inbox is no folder.") from None

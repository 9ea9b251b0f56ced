"""File access in a workspace that can't leave the workspace, even if other processes change links meanwhile.

A path is walked one component at a time. Each folder is opened relative to the descriptor of its parent folder and
never through a link. Links are read, and their targets are walked the same way. So a path can't change between the
check and the use: if somebody replaces a folder with a link meanwhile, the walk fails.
"""

import errno
import os
import secrets
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.toolbox.rules import Real, Rules, is_owners

# Path of the workspace in the sandbox. All tools accept paths that begin with this path.
MOUNT = "/workspace"

MAX_LINKS = 20
MAX_DEPTH = 30
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# NONBLOCK: opening a named pipe must not wait for a writer.
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_REASONS = {
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EACCES: "the file system does not permit it",
    errno.EPERM: "the file system does not permit it",
    errno.EROFS: "the file system is read-only",
}


class PathRefusedError(ToolError):
    """The turn may not use the path, or the path does not lead to the kind of file that was asked for."""


@dataclass(frozen=True)
class Entry:
    """An entry of a folder. `folder` is the folder's descriptor, which stays open until the next entry is requested."""

    real: Real
    mode: int
    size: int
    folder: int

    @property
    def path(self) -> str:
        """Path relative to the workspace."""
        return "/".join(self.real)


class _Walk:
    """A walk from the workspace down a path. Keeps the folders on the path open."""

    def __init__(self, root: str, rules: Rules) -> None:
        self.root = root
        self._rules = rules
        self._names: list[str] = []
        self._handles = [os.open(root, _OPEN_FOLDER)]

    @property
    def here(self) -> int:
        return self._handles[-1]

    def real(self, *more: str) -> Real:
        return (*self._names, *more)

    def close(self) -> None:
        while self._handles:
            os.close(self._handles.pop())

    def go(self, path: str, *, make_folders: bool = False) -> str:
        """Walks down `path` and returns the last component, which is in the folder `here` and is not a link.

        Returns "" if the path ends in the folder `here` itself. Raises PathRefusedError for a path that can't be used.
        """
        todo = deque(self._components(path))
        links = 0
        while todo:
            name = todo.popleft()
            if name == "..":
                self._leave(path)
                continue
            mode = self.mode_of(name)
            if mode is not None and stat.S_ISLNK(mode):
                links += 1
                if links > MAX_LINKS:
                    raise PathRefusedError(f"{path} leads through too many links.")
                todo.extendleft(reversed(self._components(os.readlink(name, dir_fd=self.here))))
            elif mode is not None and stat.S_ISDIR(mode):
                self._enter(name)
            elif not todo:
                return name
            elif mode is None and make_folders:
                self._make_folder(name)
            else:
                why = "" if mode is None else f": {'/'.join(self.real(name))} is no folder"
                raise PathRefusedError(f"There is no {path}{why}.")
        return ""

    def mode_of(self, name: str) -> int | None:
        """Returns the mode of `name` in the folder `here`; None if it does not exist or the turn may not see it."""
        if self._rules.hides(self.real(name)):
            return None
        try:
            return os.stat(name, dir_fd=self.here, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None

    def prune(self) -> None:
        """Deletes empty folders of the walked path, from the last folder up. The two topmost folders stay."""
        with suppress(OSError):
            while len(self._names) > 2:
                os.close(self._handles.pop())
                os.rmdir(self._names.pop(), dir_fd=self.here)

    def _components(self, path: str) -> list[str]:
        """Splits a path. An absolute path restarts the walk at the workspace, or is refused if it is outside."""
        if path.startswith("/"):
            for start in (MOUNT, self.root):
                if path == start or path.startswith(start + "/"):
                    path = path[len(start) :]
                    break
            else:
                raise PathRefusedError(f"{path} is outside of the workspace.")
            while len(self._handles) > 1:
                os.close(self._handles.pop())
            self._names.clear()
        return [name for name in path.split("/") if name not in ("", ".")]

    def _enter(self, name: str) -> None:
        if len(self._handles) > MAX_DEPTH:
            raise PathRefusedError("The folders are nested too deeply.")
        self._handles.append(os.open(name, _OPEN_FOLDER, dir_fd=self.here))
        self._names.append(name)

    def _leave(self, path: str) -> None:
        if not self._names:
            raise PathRefusedError(f"{path} is outside of the workspace.")
        self._names.pop()
        os.close(self._handles.pop())

    def _make_folder(self, name: str) -> None:
        if reason := self._rules.refuses_change(self.real(name)):
            raise PathRefusedError(reason)
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=self.here)
        self._enter(name)


class WorkspaceFiles:
    """The files of a workspace that a turn may see and change. All methods block: call them in a thread."""

    def __init__(self, workspace: Path, rules: Rules) -> None:
        self._workspace = workspace
        self._rules = rules

    @cached_property
    def _root(self) -> str:
        # Not before it is needed: objects are made in the event loop.
        return os.path.realpath(self._workspace)

    @classmethod
    def of(cls, context: ToolContext) -> "WorkspaceFiles":
        """Returns the workspace's files with the rules of a tool's turn."""
        return cls(context.workspace, Rules.of(context.inbound))

    def read(self, path: str, *, limit: int) -> bytes:
        """Returns the content of a file. Raises PathRefusedError for a missing file and for more than `limit` bytes."""
        with self._walk(path) as walk:
            name = walk.go(path)
            if not name:
                raise PathRefusedError(f"{path} is a folder.")
            if walk.mode_of(name) is None:
                raise PathRefusedError(f"There is no file {path}.")
            data = read_file(walk.here, name, limit)
        if len(data) > limit:
            raise PathRefusedError(f"{path} is over {limit} bytes.")
        return data

    def write(self, path: str, data: bytes) -> str:
        """Writes a file atomically, creating the folders above it. Returns its real path in the workspace.

        An existing file keeps its permissions. Raises PathRefusedError if the turn may not write the file.
        """
        with self._walk(path) as walk:
            name = walk.go(path, make_folders=True)
            if not name:
                raise PathRefusedError(f"{path} is a folder.")
            real = walk.real(name)
            if reason := self._rules.refuses_change(real) or self._refuses_linked(real):
                raise PathRefusedError(reason)
            mode = walk.mode_of(name)
            if mode is not None and not stat.S_ISREG(mode):
                raise PathRefusedError(f"{path} is not a regular file.")
            _replace(walk.here, name, data, 0o600 if mode is None else stat.S_IMODE(mode))
        return "/".join(real)

    def remove(self, path: str) -> None:
        """Deletes a file, and the folders above it that become empty. A missing file is no error."""
        with self._walk(path) as walk:
            name = walk.go(path)
            if not name:
                raise PathRefusedError(f"{path} is a folder.")
            if reason := self._rules.refuses_change(walk.real(name)) or self._refuses_linked(walk.real(name)):
                raise PathRefusedError(reason)
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=walk.here)
            walk.prune()

    def entries(self, path: str, *, deep: bool) -> Iterator[Entry]:
        """Yields the entries of a folder by name; with `deep`, of the folders below it too. Follows no links."""
        with self._walk(path) as walk:
            if name := walk.go(path):
                there = walk.mode_of(name) is not None
                raise PathRefusedError(f"{path} is no folder." if there else f"There is no folder {path}.")
            yield from self._entries(walk.here, walk.real(), deep)

    def usage(self, *, enough: int) -> int:
        """Returns approximately the bytes that the whole workspace takes on the disk. Stops counting at `enough`."""
        total, folders = 0, [self._root]
        # Walks by path and not by descriptor, so that only one folder is open at a time. No file is read here.
        while folders and total < enough:
            try:
                with os.scandir(folders.pop()) as listed:
                    for entry in listed:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        with suppress(FileNotFoundError):
                            total += max(entry.stat(follow_symlinks=False).st_blocks * 512, 4096)
            except OSError as error:
                # Folders nested deeper than a path can be long count as a full workspace.
                total += enough if error.errno == errno.ENAMETOOLONG else 0
        return total

    def _entries(self, folder: int, real: Real, deep: bool) -> Iterator[Entry]:
        for name in sorted(os.listdir(folder)):
            own = (*real, name)
            if self._rules.hides(own):
                continue
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                yield Entry(own, status.st_mode, status.st_size, folder)
                if deep and stat.S_ISDIR(status.st_mode) and len(own) <= MAX_DEPTH:
                    below = os.open(name, _OPEN_FOLDER, dir_fd=folder)
                else:
                    continue
            except OSError:
                continue  # the entry was deleted or replaced meanwhile
            try:
                yield from self._entries(below, own, deep)
            finally:
                os.close(below)

    def _refuses_linked(self, real: Real) -> str:
        """Returns why `real` may not be changed: one of the owner's files links to it or to a folder above; else ""."""
        if self._rules.caller is None:
            return ""
        for name in os.listdir(self._root):
            if not (is_owners(name) and os.path.islink(os.path.join(self._root, name))):
                continue
            target = os.path.relpath(os.path.realpath(os.path.join(self._root, name)), self._root)
            parts = tuple(target.split("/"))
            if real[: len(parts)] == parts:
                return f"{name} is the owner's alone to change, and is a link to {target}."
        return ""

    @contextmanager
    def _walk(self, path: str) -> Iterator[_Walk]:
        try:
            walk = _Walk(self._root, self._rules)
        except OSError as error:
            raise PathRefusedError("The workspace has no folder.") from error
        try:
            yield walk
        except (OSError, ValueError) as error:  # ValueError: U+0000 or a lone surrogate in the path
            raise PathRefusedError(_explain(path, error)) from error
        finally:
            walk.close()


def read_file(folder: int, name: str, limit: int) -> bytes:
    """Returns at most `limit` + 1 bytes of the regular file `name` in an open folder."""
    # Checked before the open, since opening a device can have effects, and afterwards, since the file may be replaced.
    if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise PathRefusedError(f"{name} is not a regular file.")
    handle = os.open(name, _OPEN_FILE, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise PathRefusedError(f"{name} is not a regular file.")
        with open(handle, "rb", closefd=False) as file:
            return file.read(limit + 1)
    finally:
        os.close(handle)


def _replace(folder: int, name: str, data: bytes, mode: int) -> None:
    draft = f".{secrets.token_hex(8)}.tmp"
    handle = os.open(draft, _CREATE, 0o600, dir_fd=folder)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode & 0o777)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise


def _explain(path: str, error: OSError | ValueError) -> str:
    """Returns an error text without paths of this machine."""
    if isinstance(error, ValueError):
        return "That is not a file name: it contains invalid characters."
    if isinstance(error, FileNotFoundError):
        return f"There is no {path}."
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
        return f"{path} changed while it was being opened, or is not what it seemed. Look again."
    return f"{path}: {_REASONS.get(error.errno or 0, error.strerror or 'it can not be used')}."

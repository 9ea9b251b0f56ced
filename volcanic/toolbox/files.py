"""Tools for files: read, write, edit, list, search."""

import asyncio
import fnmatch
import stat
import time
from collections.abc import Iterator

from django.conf import settings

from volcanic.media_types import sniff
from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.text import clean_text
from volcanic.toolbox.paths import Entry, WorkspaceFiles
from volcanic.toolbox.paths import read_file as read_entry
from volcanic.toolbox.space import ensure_space

MAX_SHOWN = 64_000
MAX_LISTED = 500
MAX_HITS = 100
MAX_LINE = 300
# Limits of one search.
SEARCHED_FILE_BYTES = 1024 * 1024
SEARCHED_FILES = 5000
SEARCH_SECONDS = 10.0
MAX_NEEDLE = 200


async def read_file(context: ToolContext, path: str, start_line: int = 1, lines: int = 2000) -> str:
    """Returns the text of a file in your workspace, or a part of it.

    Args:
        path: The file, from the workspace down: notes/trip.md
        start_line: The first line to return; 1 is the first of the file.
        lines: How many lines to return at most.
    """
    data = await asyncio.to_thread(WorkspaceFiles.of(context).read, path, limit=settings.MAX_FILE_BYTES)
    text = _decode(path, data)
    if start_line == 1 and len(text) <= MAX_SHOWN and text.count("\n") < lines:
        return text
    return _part(text, max(start_line, 1), max(lines, 1))


async def write_file(context: ToolContext, path: str, content: str) -> str:
    """Writes a text file in your workspace, with the folders above it. A file that is there is replaced.

    Args:
        path: The file, from the workspace down: notes/trip.md
        content: All of its text.
    """
    data = _encode(content)
    await ensure_space(context, len(data))
    real = await asyncio.to_thread(WorkspaceFiles.of(context).write, path, data)
    return f"Wrote {real} ({len(data)} bytes)."


async def edit_file(context: ToolContext, path: str, old: str, new: str, all: bool = False) -> str:
    """Replaces a piece of text in a file of your workspace.

    Args:
        path: The file, from the workspace down: notes/trip.md
        old: The text to replace, exactly as it stands in the file. Unless `all` is set it must be there just once, so
            take in enough of the lines around it.
        new: The text to put in its place; empty to take `old` out.
        all: Replace it wherever it is in the file.
    """
    if not old:
        raise ToolError("`old` is empty. To write a whole file use write_file.")
    return await asyncio.to_thread(_edit, WorkspaceFiles.of(context), path, old, new, all)


async def list_files(context: ToolContext, folder: str = "", deep: bool = False) -> str:
    """Lists the files and folders in a folder of your workspace.

    Args:
        folder: The folder, from the workspace down; empty for the workspace itself.
        deep: List what is in the folders below it too.
    """
    return await asyncio.to_thread(_list, WorkspaceFiles.of(context), folder, deep)


async def search_files(context: ToolContext, text: str, folder: str = "", names: str = "") -> str:
    """Searches the text files of your workspace for a piece of text, ignoring case. Returns lines as
    `file:line number: line`.

    Args:
        text: What to look for, within one line. It is taken as it is: no patterns.
        folder: Look only in this folder and below.
        names: Look only in files with such names: *.md
    """
    if not text.strip() or len(text) > MAX_NEEDLE or "\n" in text:
        raise ToolError(f"Search for a text within one line, of at most {MAX_NEEDLE} characters.")
    if len(names) > MAX_NEEDLE:
        raise ToolError("The pattern for names is too long.")
    return await asyncio.to_thread(_search, WorkspaceFiles.of(context), text, folder, names)


def _decode(path: str, data: bytes) -> str:
    try:
        if b"\0" not in data:
            return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    raise ToolError(f"{path} is no text: {len(data)} bytes, {sniff(data, filename=path)}.")


def _encode(content: str) -> bytes:
    data = clean_text(content).encode()
    if len(data) > settings.MAX_FILE_BYTES:
        raise ToolError(f"The text is over {settings.MAX_FILE_BYTES} bytes. Write it in several files.")
    return data


def _part(text: str, start: int, count: int) -> str:
    every = text.splitlines(keepends=True)
    if start > len(every):
        raise ToolError(f"The file has {len(every)} lines.")
    shown: list[str] = []
    size = 0
    for line in every[start - 1 : start - 1 + count]:
        if size + len(line) > MAX_SHOWN and shown:
            break
        shown.append(line if len(line) <= MAX_SHOWN else f"{line[:MAX_SHOWN]} … (the line goes on)\n")
        size += len(line)
    end = start + len(shown) - 1
    rest = f"; go on with start_line={end + 1}" if end < len(every) else ""
    return f"{''.join(shown).rstrip()}\n\n(Lines {start} to {end} of {len(every)}{rest}.)"


def _edit(files: WorkspaceFiles, path: str, old: str, new: str, everywhere: bool) -> str:
    text = _decode(path, files.read(path, limit=settings.MAX_FILE_BYTES))
    count = text.count(old)
    if count == 0:
        raise ToolError(f"That text is not in {path}. Read the file again and copy it exactly.")
    if count > 1 and not everywhere:
        raise ToolError(f"That text is in {path} {count} times. Take in more around it, or set `all`.")
    if len(text) + count * (len(new) - len(old)) > settings.MAX_FILE_BYTES:
        raise ToolError(f"{path} would be over {settings.MAX_FILE_BYTES} bytes.")
    real = files.write(path, _encode(text.replace(old, new)))
    return f"Replaced {count} {'place' if count == 1 else 'places'} in {real}."


def _list(files: WorkspaceFiles, folder: str, deep: bool) -> str:
    lines: list[str] = []
    for entry in files.entries(folder, deep=deep):
        if len(lines) == MAX_LISTED:
            lines.append(f"(There is more: only the first {MAX_LISTED} are listed. Look into a folder.)")
            break
        lines.append(_line(entry))
    return "\n".join(lines) or "(The folder is empty.)"


def _line(entry: Entry) -> str:
    if stat.S_ISDIR(entry.mode):
        return f"{entry.path}/"
    if stat.S_ISREG(entry.mode):
        return f"{entry.path} ({entry.size} bytes)"
    return f"{entry.path} ({'a link' if stat.S_ISLNK(entry.mode) else 'no regular file'})"


def _search(files: WorkspaceFiles, text: str, folder: str, names: str) -> str:
    ends = time.monotonic() + SEARCH_SECONDS
    needle = text.casefold()
    lines: list[str] = []
    searched = 0
    note = ""
    for entry in files.entries(folder, deep=True):
        if time.monotonic() > ends or searched >= SEARCHED_FILES:
            note = "(Not all files were searched. Look into one folder, or give a pattern for names.)"
            break
        if not stat.S_ISREG(entry.mode) or (names and not fnmatch.fnmatch(entry.real[-1], names)):
            continue
        searched += 1
        lines += _hits(entry, needle)
        if len(lines) > MAX_HITS:
            lines, note = lines[:MAX_HITS], f"(There are more: only the first {MAX_HITS} lines are shown.)"
            break
    found = lines or [f"Nothing in {searched} {'file' if searched == 1 else 'files'}."]
    return "\n".join([*found, note] if note else found)


def _hits(entry: Entry, needle: str) -> list[str]:
    try:
        data = read_entry(entry.folder, entry.real[-1], SEARCHED_FILE_BYTES)
        if b"\0" in data:
            return []
        text = data[:SEARCHED_FILE_BYTES].decode("utf-8", errors="replace")
    except (OSError, ToolError):
        return []  # the file was deleted or replaced meanwhile
    return [f"{entry.path}:{number}: {line}" for number, line in _matching(text, needle)]


def _matching(text: str, needle: str) -> Iterator[tuple[int, str]]:
    found = 0
    for number, line in enumerate(text.splitlines(), 1):
        if needle in line.casefold():
            yield number, line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"
            found += 1
            if found > MAX_HITS:
                return

"""Tools for long-term memory: the file MEMORY.md and memories in the database.

The instructions of every turn contain MEMORY.md. The assistant looks up memories in the database with `recall`.
"""

import asyncio

from django.conf import settings

from volcanic.aio.db import run_db
from volcanic.models import Memory
from volcanic.runtime.base import Inbound
from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.selectors import memories_of_source, memory_search
from volcanic.services import memory_create
from volcanic.text import one_line
from volcanic.toolbox.paths import PathRefusedError, WorkspaceFiles

MEMORY_FILE = "MEMORY.md"
MAX_TEXT = 2000
# Limit of memories from one caller.
MAX_OF_CALLER = 200
MAX_FOUND = 20
MAX_LINES = 20
MAX_LINE = 500


async def remember(context: ToolContext, text: str, always: bool = False) -> str:
    """Remembers something beyond this conversation: `recall` finds it again.

    Args:
        text: What to remember, in a sentence or two that can be understood alone.
        always: Have it in mind in every conversation, without looking for it: it goes into MEMORY.md. Only your owner
            can ask for that.
    """
    text = one_line(text)
    if not text or len(text) > MAX_TEXT:
        raise ToolError(f"Remember something of at most {MAX_TEXT} characters; keep more in a file.")
    inbound = context.inbound
    if always:
        if inbound is not None:
            raise ToolError(f"{MEMORY_FILE} is the owner's alone to change. Remember it without `always`.")
        await asyncio.to_thread(_append, WorkspaceFiles.of(context), text)
        return f"Added to {MEMORY_FILE}."
    await run_db(_remember, context.workspace_id, context.origin, inbound, text)
    if inbound is not None:
        return f"Remembered, marked as coming from {inbound.caller}."
    return "Remembered."


async def recall(context: ToolContext, about: str = "") -> str:
    """Looks up what was remembered earlier, in other conversations too.

    What is marked as coming from a caller is that caller's word: your owner has not confirmed it.

    Args:
        about: A few words to look for; empty for the latest.
    """
    source = context.inbound.scope if context.inbound else None
    lines = await asyncio.to_thread(_file_lines, WorkspaceFiles.of(context), about)
    if context.workspace_id is not None:
        rows = await run_db(
            memory_search, workspace_id=context.workspace_id, query=about, source=source, limit=MAX_FOUND
        )
        lines += [f"- {_shown(row)}" for row in rows]
    return "\n".join(lines) or "Nothing was remembered about that."


def _remember(workspace_id: int | None, origin: str, inbound: Inbound | None, text: str) -> None:
    if workspace_id is None:
        raise ToolError("There is no memory in this conversation.")
    if inbound is None:
        memory_create(workspace_id=workspace_id, text=text, origin=origin)
        return
    if memories_of_source(workspace_id=workspace_id, source=inbound.scope) >= MAX_OF_CALLER:
        raise ToolError(f"So much was remembered for {inbound.caller} that there is no more room for it.")
    memory_create(workspace_id=workspace_id, text=text, source=inbound.scope, caller=inbound.caller, origin=origin)


def _shown(row: Memory) -> str:
    mark = f", from caller {row.caller}, not confirmed by your owner" if row.source else ""
    return f"({row.created_at:%Y-%m-%d}{mark}) {row.text}"


def _file_lines(files: WorkspaceFiles, about: str) -> list[str]:
    """Returns the lines of MEMORY.md that contain words of `about`.

    Without words, returns nothing, since the instructions contain MEMORY.md anyway, up to a size.
    """
    words = [word for word in about.casefold().split() if len(word) > 2]
    try:
        text = files.read(MEMORY_FILE, limit=settings.MAX_FILE_BYTES).decode(errors="replace") if words else ""
    except PathRefusedError:
        return []
    found = [line.strip() for line in text.splitlines() if any(word in line.casefold() for word in words)]
    return [f"- ({MEMORY_FILE}) {line[:MAX_LINE]}" for line in found[:MAX_LINES]]


def _append(files: WorkspaceFiles, text: str) -> None:
    try:
        data = files.read(MEMORY_FILE, limit=settings.MAX_FILE_BYTES)
    except PathRefusedError:
        if any(entry.path == MEMORY_FILE for entry in files.entries("", deep=False)):
            raise  # the file exists but can't be read, so it must not be overwritten
        data = b""
    if data and not data.endswith(b"\n"):
        data += b"\n"
    files.write(MEMORY_FILE, data + f"- {text}\n".encode())

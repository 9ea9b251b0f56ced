"""Tools for working memory: notes on one request, kept for a while and visible only to turns on that request.

The code that starts a turn sets the namespace of its notes (`inbound.notes`). No argument of a tool can name another
namespace.
"""

from volcanic.aio.db import run_db
from volcanic.runtime.base import Inbound
from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.selectors import notes_of
from volcanic.services import note_write
from volcanic.text import one_line

MAX_KEYS = 20
MAX_KEY = 60
MAX_TEXT = 4000
# Limit in characters for showing all notes together. Further notes can be read by their key.
MAX_SHOWN = 16_000


def offered(inbound: Inbound | None) -> bool:
    """Returns whether the tools are offered: in turns that have a working memory."""
    return inbound is not None and inbound.notes != ""


async def read_working_memory(context: ToolContext, key: str = "") -> str:
    """Returns what was noted about this request.

    Args:
        key: The note to return; empty for all of them, each with its key.
    """
    workspace_id, namespace = _place(context)
    notes = await run_db(notes_of, workspace_id=workspace_id, namespace=namespace)
    if not key.strip():
        return _listed(notes) or "Nothing was noted yet."
    if (text := notes.get(_clean_key(key))) is None:
        raise ToolError(f"There is no such note. There are: {', '.join(notes) or 'none'}.")
    return text


async def write_working_memory(context: ToolContext, key: str, text: str) -> str:
    """Notes something about this request for later. It is kept for a while, and not remembered for good.

    Args:
        key: A short name for the note: summary. A note of that name is replaced.
        text: What to note.
    """
    workspace_id, namespace = _place(context)
    key, text = _clean_key(key), text.strip()
    if not text or len(text) > MAX_TEXT:
        raise ToolError(f"Note something of at most {MAX_TEXT} characters.")
    await run_db(_write, workspace_id, namespace, key, text)
    return f"Noted under {key}."


def _place(context: ToolContext) -> tuple[int, str]:
    """Returns the workspace's id and the namespace of the turn's notes. Raises ToolError without a working memory."""
    inbound = context.inbound
    if inbound is None or not offered(inbound) or context.workspace_id is None:
        raise ToolError("There is no working memory in this conversation.")
    return context.workspace_id, inbound.notes


def _clean_key(key: str) -> str:
    key = one_line(key)
    if not key or len(key) > MAX_KEY or not key.isprintable():
        raise ToolError(f"The key is a short name of at most {MAX_KEY} characters.")
    return key


def _write(workspace_id: int, namespace: str, key: str, text: str) -> None:
    notes = notes_of(workspace_id=workspace_id, namespace=namespace)
    if key not in notes and len(notes) >= MAX_KEYS:
        raise ToolError(f"There are {len(notes)} notes already; write over one of them: {', '.join(notes)}.")
    note_write(workspace_id=workspace_id, namespace=namespace, key=key, text=text)


def _listed(notes: dict[str, str]) -> str:
    lines: list[str] = []
    room = MAX_SHOWN
    for key, text in notes.items():
        room -= len(text)
        lines.append(f"{key}: {text}" if room >= 0 else f"{key}: ({len(text)} characters: read it by its key)")
    return "\n\n".join(lines)

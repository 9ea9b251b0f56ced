"""Tool `send`: sends a file of the workspace to the other side of the conversation."""

import asyncio
import base64
import re
from pathlib import PurePosixPath
from typing import Any

from django.conf import settings

from volcanic.media_types import HEAD_BYTES, sniff
from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.text import clean_text
from volcanic.toolbox.paths import WorkspaceFiles

MAX_FILES = 20
MAX_NAME = 120
MAX_CAPTION = 1000
_MAX_ID = 80

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f/\\\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


async def send(context: ToolContext, path: str, name: str = "", caption: str = "") -> str:
    """Gives the other side of this conversation a file from your workspace, beside your answer.

    Args:
        path: The file, from the workspace down: reports/trip.pdf
        name: The file name that the other side gets, if it should be another one.
        caption: A sentence about the file.
    """
    if context.sink is None:
        raise ToolError("The other side of this conversation can't be sent files.")
    sent = context.state["sent"] = context.state.get("sent", 0) + 1
    if sent > MAX_FILES:
        raise ToolError(f"At most {MAX_FILES} files can be sent in one turn. Put them into one archive.")
    limit: int = settings.MAX_FILE_BYTES
    data = await asyncio.to_thread(WorkspaceFiles.of(context).read, path, limit=limit)
    filename = file_name(name) or file_name(PurePosixPath(path).name) or "file"
    kind = sniff(data[:HEAD_BYTES], filename=filename)
    raw = await asyncio.to_thread(lambda: base64.b64encode(data).decode())
    artifact: dict[str, Any] = {
        "artifactId": _artifact_id(context, path, filename),
        "name": filename,
        "parts": [{"raw": raw, "filename": filename, "mediaType": kind}],
    }
    if caption := clean_text(caption).strip()[:MAX_CAPTION]:
        artifact["description"] = caption
    await context.sink.artifact(artifact)
    return f"Sent {filename} ({len(data)} bytes, {kind})."


def file_name(name: str) -> str:
    """Returns a file name that is valid everywhere: one line, no folders, at most MAX_NAME characters; "" if empty."""
    name = _UNPRINTABLE.sub("_", clean_text(name)).strip(" .")
    if len(name) <= MAX_NAME:
        return name
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > 16:
        return name[:MAX_NAME]
    return f"{stem[: MAX_NAME - len(ending) - 1]}.{ending}"


def _artifact_id(context: ToolContext, path: str, filename: str) -> str:
    """Returns the id of a file's artifact.

    A file that is sent again gets the same id, in later turns of the task too, so that it replaces the earlier
    artifact. Another file with the same name in the same turn gets another id.
    """
    ids: dict[tuple[str, str], str] = context.state.setdefault("send", {})
    known = ids.get((path, filename))
    if known is not None:
        return known
    base = "file-" + (re.sub(r"[^A-Za-z0-9._-]+", "-", filename).strip("-") or "unnamed")[:_MAX_ID]
    chosen, number = base, 1
    while chosen in ids.values():
        number += 1
        chosen = f"{base}-{number}"
    ids[(path, filename)] = chosen
    return chosen

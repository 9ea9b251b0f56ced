"""Disk quota of the workspace for callers' turns."""

import asyncio

from django.conf import settings

from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.toolbox.paths import WorkspaceFiles

FULL = "The workspace is full: callers' turns can write no more until the owner makes room."


async def ensure_space(context: ToolContext, more: int = 0) -> int:
    """Returns the bytes that the turn may still write after `more` bytes. Raises ToolError if `more` is too much.

    In the owner's own turns, the workspace is not measured: each time, the whole WORKSPACE_MAX_BYTES may be written.
    """
    limit: int = settings.WORKSPACE_MAX_BYTES
    if context.inbound is None:
        return limit
    used = await asyncio.to_thread(WorkspaceFiles.of(context).usage, enough=limit)
    if used + more >= limit:
        raise ToolError(FULL)
    return limit - used - more

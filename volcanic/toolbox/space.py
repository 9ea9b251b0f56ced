"""How much callers' turns may fill the workspace."""

import asyncio

from django.conf import settings

from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.toolbox.paths import WorkspaceFiles

FULL = "The workspace is full: callers' turns can write no more until the owner makes room."


async def ensure_space(context: ToolContext, more: int = 0) -> int:
    """Returns how many bytes the turn may still write after `more`. Raises ToolError where that is too much already.

    The owner's own turns are not measured: they may write as much again as callers' turns at most.
    """
    limit: int = settings.WORKSPACE_MAX_BYTES
    if context.inbound is None:
        return limit
    used = await asyncio.to_thread(WorkspaceFiles.of(context).usage, enough=limit)
    if used + more >= limit:
        raise ToolError(FULL)
    return limit - used - more

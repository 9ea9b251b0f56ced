"""A sink for turns that nobody reads along with: they only look."""

from typing import Any

from volcanic.runtime.tools import ToolError


class SilentSink:
    """Keeps nothing: what the turn came to is in its outcome."""

    async def text(self, delta: str, *, restart: bool = False) -> None:
        """Lets text pass."""

    async def tool_call(self, name: str, arguments: dict[str, Any]) -> None:
        """Lets a tool call pass."""

    async def artifact(self, artifact: dict[str, Any]) -> None:
        """Refuses an artifact: no tool of such a turn makes one."""
        raise ToolError("Nothing can be sent out of this turn.")

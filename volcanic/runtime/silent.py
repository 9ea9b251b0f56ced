"""Sink for turns whose stream nobody reads, such as triage turns."""

from typing import Any

from volcanic.runtime.tools import ToolError


class SilentSink:
    """Drops all output, since the result of such a turn is in its outcome."""

    async def text(self, delta: str, *, restart: bool = False) -> None:
        """Drops the text."""

    async def tool_call(self, name: str, arguments: dict[str, Any]) -> None:
        """Ignores the tool call."""

    async def artifact(self, artifact: dict[str, Any]) -> None:
        """Raises ToolError, since such a turn can't send artifacts."""
        raise ToolError("Nothing can be sent out of this turn.")

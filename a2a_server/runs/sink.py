"""The sink of a task's run: writes the output of a turn to the task's artifacts while the turn runs."""

import asyncio
import logging
from typing import Any

from a2a_server import reports
from a2a_server.services import ArtifactUpdate, Run, artifact_write, run_uses
from volcanic.a2a_json import response_artifact
from volcanic.aio.db import run_db
from volcanic.runtime import tools
from volcanic.turns.buffer import Chunk, TextBuffer
from volcanic.turns.execution import RunLostError

logger = logging.getLogger(__name__)


class TaskSink:
    """The sink of one run. The text of the answer goes to the artifact `response`, and tool calls to the report."""

    def __init__(self, run: Run, asked: str) -> None:
        """Makes the sink of `run`. `asked` is the report's text on the request, from `reports.asked`."""
        self._run = run
        self._asked = asked
        self._buffer = TextBuffer(self._write)
        # The names of tools and paths of files for the report, in the order of first use.
        self._tools: dict[str, None] = {}
        self._files: dict[str, None] = {}
        self._noting = asyncio.Lock()

    async def text(self, delta: str, *, restart: bool = False) -> None:
        """Takes a piece of the answer, or with `restart` begins the answer again; see `volcanic.runtime.Sink`."""
        await self._buffer.add(delta, restart=restart)

    async def tool_call(self, name: str, arguments: dict[str, Any]) -> None:
        """Stores a tool call in the pending report before the tool runs, so that no end of the run loses the call.

        Raises RunLostError if the run lost its task.
        """
        logger.info("tool call %s in task %s", name, self._run.task_id)
        # Calls write one after another, so that the last write holds all tools and files.
        async with self._noting:
            before = self.uses()
            self._tools[name] = None
            touches = tools.touched(name)
            if (tools.WORKSPACE in touches or tools.CALLER in touches) and isinstance(arguments.get("path"), str):
                self._files[arguments["path"]] = None
            if (uses := self.uses()) == before:
                return
            if not await run_db(run_uses, run=self._run, pending_report=f"{self._asked}\n{uses}"):
                raise RunLostError

    def uses(self) -> str:
        """Returns the report's lines on the tools and files used so far."""
        return reports.used(self._tools, self._files)

    async def artifact(self, artifact: dict[str, Any]) -> None:
        """Writes a whole artifact at once. Raises RunLostError if the run lost its task."""
        if not await run_db(artifact_write, run=self._run, update=ArtifactUpdate(artifact=artifact)):
            raise RunLostError

    async def close(self) -> None:
        """Waits for the write that is under way. The end of the run writes the rest of the answer."""
        await self._buffer.close()

    def rest(self, text: str | None) -> ArtifactUpdate | None:
        """Returns the part of the answer that is not written yet, None if all is written; see `TextBuffer.rest`."""
        chunk = self._buffer.rest(text)
        return None if chunk is None else _update(chunk, last=True)

    async def _write(self, chunk: Chunk) -> bool:
        return await run_db(artifact_write, run=self._run, update=_update(chunk, last=False))


def _update(chunk: Chunk, *, last: bool) -> ArtifactUpdate:
    if last and not chunk.append:
        return ArtifactUpdate(artifact=response_artifact(chunk.whole))
    return ArtifactUpdate(
        artifact=response_artifact(chunk.whole), chunk=response_artifact(chunk.new), append=chunk.append, last=last
    )

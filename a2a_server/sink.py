"""Takes what a turn produces and makes it the task's artifacts, while the turn runs."""

import asyncio
import logging
from typing import Any

from a2a_server import reports
from a2a_server.artifacts import response_artifact
from a2a_server.services import ArtifactUpdate, Claim, artifact_write, run_uses
from volcanic.db import run_db
from volcanic.runtime import tools
from volcanic.text import clean_text

logger = logging.getLogger(__name__)

_WRITE_EVERY_SECONDS = 0.1


class RunLostError(Exception):
    """The run holds its task no more: canceled, expired or taken over. It must stop and write nothing."""


class TaskSink:
    """The sink of one run. Text is gathered and written at most once each 100 ms, in order.

    What is written shows in the task at once, so that a subscriber who comes late gets the text so far with the
    snapshot and the rest as appended chunks.
    """

    def __init__(self, claim: Claim, asked: str) -> None:
        """`asked` is what the run is for, in words for the owner."""
        self._claim = claim
        self._asked = asked
        self._text = ""
        self._written = 0  # so many characters of the text were written
        self._shown = False  # anything was written since the answer began
        self._writer: asyncio.Task[None] | None = None
        self._writing = False
        self._stopping = False
        # What the owner is told afterwards, in the order of its first use.
        self._tools: dict[str, None] = {}
        self._files: dict[str, None] = {}
        self._noting = asyncio.Lock()

    async def text(self, delta: str, *, restart: bool = False) -> None:
        """Takes a piece of the answer; see `volcanic.runtime.Sink`."""
        if restart:
            await self._stop_writing()
            self._text, self._written, self._shown = "", 0, False
        self._text += clean_text(delta)
        if self._writer is not None and self._writer.done():
            self._writer.result()  # raises what the write raised
            self._writer = None
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_soon())

    async def tool_call(self, name: str, arguments: dict[str, Any]) -> None:
        """Writes down a tool call that is about to run, so that the owner is told of it however the run ends."""
        logger.info("tool call %s in task %s", name, self._claim.task_id)
        # One after the other: what is written last has to be all of it.
        async with self._noting:
            before = self.uses()
            self._tools[name] = None
            touches = tools.touched(name)
            if (tools.WORKSPACE in touches or tools.CALLER in touches) and isinstance(arguments.get("path"), str):
                self._files[arguments["path"]] = None
            if (uses := self.uses()) == before:
                return
            if not await run_db(run_uses, claim=self._claim, untold=f"{self._asked}\n{uses}"):
                raise RunLostError

    def uses(self) -> str:
        """Returns the lines on what was used so far, for the owner."""
        return reports.used(self._tools, self._files)

    async def artifact(self, artifact: dict[str, Any]) -> None:
        """Writes a whole artifact at once."""
        if not await run_db(artifact_write, claim=self._claim, update=ArtifactUpdate(artifact=artifact)):
            raise RunLostError

    async def close(self) -> None:
        """Waits until nothing is being written any more. What is still to be written, the end of the run writes."""
        await self._stop_writing()

    def rest(self, text: str | None) -> ArtifactUpdate | None:
        """Returns what is still to be written of the answer, None for nothing.

        `text` is the whole answer; None leaves it as it is (the run failed or asks back), marked complete if any of
        it was shown.
        """
        if text is None and not self._shown:
            return None
        final = self._text if text is None else clean_text(text)
        artifact = response_artifact(final)
        if not self._shown or final[: self._written] != self._text[: self._written]:
            return ArtifactUpdate(artifact=artifact)
        return ArtifactUpdate(artifact=artifact, chunk=response_artifact(final[self._written :]), append=True)

    async def _write_soon(self) -> None:
        while not self._stopping:
            await asyncio.sleep(_WRITE_EVERY_SECONDS)
            if len(self._text) == self._written:
                return
            text = self._text
            self._writing = True
            done = await run_db(
                artifact_write,
                claim=self._claim,
                update=ArtifactUpdate(
                    artifact=response_artifact(text),
                    chunk=response_artifact(text[self._written :]),
                    append=self._shown,
                    last=False,
                ),
            )
            self._writing = False
            if not done:
                raise RunLostError
            self._written, self._shown = len(text), True

    async def _stop_writing(self) -> None:
        """Ends the writer: at once while it rests, after the write when it is in the middle of one."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        self._stopping = True
        if not self._writing:
            writer.cancel()
        (result,) = await asyncio.gather(writer, return_exceptions=True)
        self._stopping = False
        if isinstance(result, Exception):
            raise result

"""The buffer of streamed text: what a model says piece by piece is written at most once each 100 ms."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from volcanic.text import clean_text
from volcanic.turns.execution import RunLostError

WRITE_EVERY_SECONDS = 0.1


@dataclass(frozen=True)
class Chunk:
    """A piece of an answer that is to be written: the `whole` answer so far, and what is `new` of it.

    `append`: some of the answer is written already, and `new` comes after that.
    """

    whole: str
    new: str
    append: bool


class TextBuffer:
    """Gathers the text of one answer and has it written in order, in the background.

    A reader who comes late gets the text so far at once, and the rest as chunks.
    """

    def __init__(self, write: Callable[[Chunk], Awaitable[bool]]) -> None:
        """`write` stores a chunk and returns whether the run still holds its lease."""
        self._write = write
        self._text = ""
        self._written = 0  # characters of the text that are written
        self._shown = False  # whether anything was written since the answer began
        self._writer: asyncio.Task[None] | None = None
        self._writing = False
        self._stopping = False

    async def add(self, delta: str, *, restart: bool = False) -> None:
        """Takes a piece of the answer. `restart` drops what came before.

        Raises what an earlier write raised, RunLostError among it.
        """
        if restart:
            await self.close()
            self._text, self._written, self._shown = "", 0, False
        self._text += clean_text(delta)
        if self._writer is not None and self._writer.done():
            self._writer.result()  # raises what the write raised
            self._writer = None
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_soon())

    async def close(self) -> None:
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

    @property
    def text(self) -> str:
        """The answer so far, written or not."""
        return self._text

    def rest(self, text: str | None) -> Chunk | None:
        """Returns what is still to be written of the answer, None for nothing.

        `text` is the whole answer. None leaves it as it is (the turn failed or asks back), marked complete if any of
        it was shown.
        """
        if text is None and not self._shown:
            return None
        final = self._text if text is None else clean_text(text)
        if not self._shown or final[: self._written] != self._text[: self._written]:
            return Chunk(final, final, append=False)
        return Chunk(final, final[self._written :], append=True)

    async def _write_soon(self) -> None:
        while not self._stopping:
            await asyncio.sleep(WRITE_EVERY_SECONDS)
            if len(self._text) == self._written:
                return
            text = self._text
            self._writing = True
            held = await self._write(Chunk(text, text[self._written :], append=self._shown))
            self._writing = False
            if not held:
                raise RunLostError
            self._written, self._shown = len(text), True

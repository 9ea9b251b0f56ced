"""Whose text is sent next, so that channels that are down hold up no other.

To one channel a process sends one text after another; for a workspace it sends a few at a time, and a few more in all.
Channels whose last text did not arrive have half of these places among them: the other half is for those that answer.
All of it is of one event loop, and there is no harm in losing it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """The texts of a workspace to one channel, as it is shown: two addresses at one service can be one line."""

    workspace_id: int
    channel: str


class Lines:
    """The lines that are worked off in this process, and the places that they share."""

    def __init__(self, *, in_all: int, of_workspace: int) -> None:
        self._in_all = in_all
        self._of_workspace = of_workspace
        self._open: set[Line] = set()
        self._sending: set[Line] = set()
        self._down: set[Line] = set()
        self._waiting: dict[Line, asyncio.Future[None]] = {}

    @contextmanager
    def opened(self, line: Line) -> Iterator[bool]:
        """Gives a line to whoever comes first, and says to others, with False, that somebody is at it."""
        if line in self._open:
            yield False
            return
        self._open.add(line)
        try:
            yield True
        finally:
            self._open.discard(line)

    @asynccontextmanager
    async def place(self, line: Line) -> AsyncIterator[None]:
        """Waits until a text of an opened line may be sent, and keeps the place for so long."""
        given = self._waiting[line] = asyncio.get_running_loop().create_future()
        self._give()
        try:
            await given
            yield
        finally:
            self._waiting.pop(line, None)
            self._sending.discard(line)
            self._give()

    def mark(self, line: Line, *, down: bool) -> None:
        """Notes whether a line's last text arrived."""
        if down:
            self._down.add(line)
        else:
            self._down.discard(line)

    def _give(self) -> None:
        """Gives the places that are free to those who wait, in their order, as far as there is one for them."""
        for line, given in list(self._waiting.items()):
            if not given.done() and self._has_place(line):
                del self._waiting[line]
                self._sending.add(line)
                given.set_result(None)

    def _has_place(self, line: Line) -> bool:
        of_workspace = {other for other in self._sending if other.workspace_id == line.workspace_id}
        for most, sending in ((self._in_all, self._sending), (self._of_workspace, of_workspace)):
            if len(sending) >= most or (line in self._down and len(sending & self._down) >= most // 2):
                return False
        return True

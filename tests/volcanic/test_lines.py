"""Whose text is sent next: one at a time to a channel, a few for a workspace, and half of it for those that are up."""

import asyncio

import pytest

from volcanic.lines import Line, Lines


class Sending:
    """Texts that are on their way until `end` is called. `order` is that in which they were begun."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.order: list[Line] = []
        self._ends: dict[Line, asyncio.Event] = {}
        self._tasks: dict[Line, asyncio.Task[None]] = {}

    async def begin(self, *lines: Line) -> None:
        for line in lines:
            self._ends[line] = asyncio.Event()
            self._tasks[line] = asyncio.create_task(self._send(line))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def _send(self, line: Line) -> None:
        async with self.lines.place(line):
            self.order.append(line)
            await self._ends[line].wait()

    async def end(self, line: Line) -> None:
        self._ends[line].set()
        await self._tasks.pop(line)
        await asyncio.sleep(0)

    async def cancel(self, line: Line) -> None:
        task = self._tasks.pop(line)
        task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(0)


def _of(workspace: int, number: int) -> list[Line]:
    return [Line(workspace, f"{workspace}.{one}") for one in range(number)]


def test_a_line_is_one_s() -> None:
    lines = Lines(in_all=4, of_workspace=2)
    first, other = _of(1, 2)
    with lines.opened(first) as mine:
        with lines.opened(first) as again, lines.opened(other) as another:
            assert (mine, again, another) == (True, False, True)
        with lines.opened(first) as again:
            assert not again
    with lines.opened(first) as mine:
        assert mine


async def test_places_are_given_in_turn() -> None:
    sending = Sending(Lines(in_all=3, of_workspace=2))
    one, two, three = _of(1, 3), _of(2, 3), _of(3, 1)
    await sending.begin(*one, *two, *three)
    assert sending.order == [one[0], one[1], two[0]]
    await sending.end(two[0])
    assert sending.order[3:] == [two[1]]  # the first workspace has its share
    await sending.end(one[1])
    assert sending.order[4:] == [one[2]]
    await sending.end(one[0])
    assert sending.order[5:] == [two[2]]
    await sending.end(one[2])
    assert sending.order[6:] == three


async def test_who_is_down_leaves_half_of_the_places() -> None:
    lines = Lines(in_all=4, of_workspace=2)
    sending = Sending(lines)
    down, up = [line for workspace in (1, 2, 3) for line in _of(workspace, 2)], [*_of(4, 2), Line(1, "up")]
    for line in down:
        lines.mark(line, down=True)
    await sending.begin(*down, *up)
    assert sending.order == [down[0], down[2], *up[:2]]  # one of each workspace, two in all
    await sending.end(up[0])
    assert sending.order[4:] == [up[2]]
    lines.mark(down[4], down=False)
    await sending.end(up[1])
    assert sending.order[5:] == [down[4]]


@pytest.mark.parametrize("number", [0, 1])
async def test_who_is_cancelled_leaves_its_place(number: int) -> None:
    """Whether it has it or waits for it."""
    sending = Sending(Lines(in_all=1, of_workspace=1))
    lines = _of(1, 3)
    await sending.begin(*lines)
    await sending.cancel(lines[number])
    await sending.end(lines[1 - number])
    assert sending.order[-1] == lines[2]


async def test_who_is_cancelled_in_the_moment_it_is_given_a_place() -> None:
    sending = Sending(Lines(in_all=1, of_workspace=1))
    lines = _of(1, 3)
    await sending.begin(*lines)
    sending._ends[lines[0]].set()
    sending._tasks[lines[1]].cancel()
    await asyncio.wait(list(sending._tasks.values())[:2])
    await asyncio.sleep(0)
    assert sending.order == [lines[0], lines[2]]

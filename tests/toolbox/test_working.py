"""Working memory: for a while, for one request's turns, and within bounds."""

import pytest
import time_machine

from tests.toolbox.conftest import MakeContext
from volcanic.aio.db import run_db
from volcanic.models import WorkingNote, Workspace
from volcanic.runtime import tools
from volcanic.runtime.base import Inbound
from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.services import notes_prune
from volcanic.toolbox import working
from volcanic.toolbox.working import read_working_memory, write_working_memory

pytestmark = pytest.mark.django_db(transaction=True)

TOOLS = {"read_working_memory", "write_working_memory"}


def _triage(notes: str) -> Inbound:
    return Inbound(caller="travel-bot", scope="a2a-1", notes=notes)


@pytest.fixture
def context(caller_context: MakeContext, workspace: Workspace) -> ToolContext:
    """A turn that looks at one request."""
    return caller_context(workspace_id=workspace.pk, inbound=_triage("a2a-inbox/7"))


def test_only_turns_with_a_namespace_have_the_tools() -> None:
    assert tools.allowed(_triage("a2a-inbox/7")) >= TOOLS
    assert not tools.allowed(_triage("")) & TOOLS
    assert not tools.allowed(None) & TOOLS
    assert tools.allowed(_triage("a2a-inbox/7"), reads={tools.WORKING}, changes={tools.WORKING}) == TOOLS


async def test_notes_are_kept_and_replaced(context: ToolContext) -> None:
    assert await read_working_memory(context) == "Nothing was noted yet."
    assert await write_working_memory(context, " the  summary ", "They want a flight.") == "Noted under the summary."
    await write_working_memory(context, "dates", "May")
    await write_working_memory(context, "dates", "June\0")
    assert await read_working_memory(context, "dates") == "June\ufffd"
    assert await read_working_memory(context) == "dates: June\ufffd\n\nthe summary: They want a flight."
    with pytest.raises(ToolError, match=r"no such note\. There are: dates, the summary"):
        await read_working_memory(context, "price")


async def test_no_turn_reaches_anothers_notes(
    context: ToolContext, caller_context: MakeContext, workspace: Workspace, other_workspace: Workspace
) -> None:
    await write_working_memory(context, "dates", "May")
    others = [
        caller_context(workspace_id=workspace.pk, inbound=_triage("a2a-inbox/8")),
        caller_context(workspace_id=other_workspace.pk, inbound=_triage("a2a-inbox/7")),
    ]
    for other in others:
        assert await read_working_memory(other) == "Nothing was noted yet."
    for none in (caller_context(workspace_id=workspace.pk), caller_context(inbound=_triage("a2a-inbox/7"))):
        with pytest.raises(ToolError, match="no working memory"):
            await read_working_memory(none, "a2a-inbox/7/dates")
        with pytest.raises(ToolError, match="no working memory"):
            await write_working_memory(none, "dates", "x")


async def test_notes_end(context: ToolContext) -> None:
    with time_machine.travel("2030-01-01T00:00:00Z", tick=False) as clock:
        await write_working_memory(context, "old", "1")
        clock.shift(80000)
        await write_working_memory(context, "new", "2")
        clock.shift(6399)
        assert await read_working_memory(context) == "new: 2\n\nold: 1"
        clock.shift(1)
        assert await read_working_memory(context) == "new: 2"
        assert await run_db(notes_prune) == 1
    assert await run_db(lambda: list(WorkingNote.objects.values_list("key", flat=True))) == ["new"]


async def test_bounds(context: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("", " \n", "x" * 4001):
        with pytest.raises(ToolError, match="at most 4000"):
            await write_working_memory(context, "k", text)
    for key in ("", " ", "x" * 61, "a\0b"):
        with pytest.raises(ToolError, match="short name"):
            await write_working_memory(context, key, "x")
    for number in range(20):
        await write_working_memory(context, f"k{number:02}", "x" * 1000)
    with pytest.raises(ToolError, match="20 notes already"):
        await write_working_memory(context, "more", "x")
    await write_working_memory(context, "k00", "y")
    monkeypatch.setattr(working, "MAX_SHOWN", 1500)
    shown = (await read_working_memory(context)).split("\n\n")
    assert shown[:3] == ["k00: y", "k01: " + "x" * 1000, "k02: (1000 characters: read it by its key)"]

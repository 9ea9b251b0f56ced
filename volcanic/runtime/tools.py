"""The tools an agent turn can be given. Packages register theirs when they start; policy chooses those of each turn.

What a tool reads and what it changes are sets of these words, so that policy can choose by what is touched:

    workspace   the workspace's files, as far as the turn may see them (MEMORY.md is one of them)
    memory      what was remembered: MEMORY.md and the rows of the memory table
    skills      what callers can be granted
    caller      what the other side of the conversation is shown
    owner       what the owner is shown outside of the conversation
    processes   programs are run
    network     other hosts are reached
    working     the notes that are kept for a while, of the turn's own request
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from inspect import getdoc
from pathlib import Path
from typing import Any

from volcanic.runtime.base import Inbound, Sink

# Asks the other side a question and ends the turn; their answer resumes it. Every runner that has tools provides it
# itself, so it is not registered here.
REQUEST_INPUT = "request_input"

WORKSPACE, MEMORY, CALLER, OWNER = "workspace", "memory", "caller", "owner"
PROCESSES, NETWORK, WORKING, SKILLS = "processes", "network", "working", "skills"
EVERYTHING = frozenset({WORKSPACE, MEMORY, CALLER, OWNER, PROCESSES, NETWORK, WORKING, SKILLS})


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """On whose behalf a tool runs, and what of the turn it may use."""

    session_id: int
    origin: str
    workspace: Path
    workspace_id: int | None = None
    # None in the owner's own turns.
    inbound: Inbound | None = None
    sink: Sink | None = None
    deadline: datetime | None = None
    # What tools remember from one call to the next, for the time of the turn.
    state: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


# Called as `function(context, **arguments)`; returns text or anything JSON can hold.
ToolFunction = Callable[..., Awaitable[Any]]
# Whether there is such a tool in a turn of this kind, whatever policy says.
Offered = Callable[[Inbound | None], bool]


class ToolError(Exception):
    """A tool could not do what it was asked: the model is told this text and goes on."""


def always(_inbound: Inbound | None) -> bool:
    """Offers a tool in every turn."""
    return True


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A registered tool. `reads` and `changes` name what it touches, for policy and for the owner to see."""

    name: str
    function: ToolFunction
    description: str
    reads: frozenset[str]
    changes: frozenset[str]
    offered: Offered = always
    # It runs only after the owner has said yes to this very call.
    confirm: bool = False


_tools: dict[str, Tool] = {}


def register(
    name: str,
    function: ToolFunction,
    *,
    reads: Iterable[str] = (),
    changes: Iterable[str] = (),
    description: str = "",
    offered: Offered = always,
    confirm: bool = False,
) -> Tool:
    """Makes `function` known as the tool `name`.

    It is an async function whose first parameter is the ToolContext; the other parameters, their types and defaults
    are what the model may fill in. `description`, else the function's docstring up to its
    `Args:` (which tell about the parameters), tells the model what it is for. `offered` is asked for each turn.
    `confirm`: the turn ends with a question to the owner, and the tool runs when they say yes; so only the owner's own
    turns have it.
    """
    if name == REQUEST_INPUT:
        raise ValueError(f"{REQUEST_INPUT} is provided by the runner")
    tool = Tool(
        name=name,
        function=function,
        description=description or (getdoc(function) or "").partition("\nArgs:")[0].strip(),
        reads=frozenset(reads),
        changes=frozenset(changes),
        offered=offered,
        confirm=confirm,
    )
    if unknown := sorted((tool.reads | tool.changes) - EVERYTHING):
        raise ValueError(f"{name} touches what is not in the vocabulary: {', '.join(unknown)}")
    if _tools.setdefault(name, tool) != tool:
        raise ValueError(f"another tool is already registered as {name}")
    return tool


def unregister(name: str) -> None:
    """Forgets the tool `name`, if there is one."""
    _tools.pop(name, None)


def get(names: Iterable[str]) -> list[Tool]:
    """Returns the registered tools among `names`, by name. `request_input` is passed over; an unknown name raises."""
    wanted = sorted(set(names) - {REQUEST_INPUT})
    if unknown := [name for name in wanted if name not in _tools]:
        raise LookupError(f"no such tool: {', '.join(unknown)}")
    return [_tools[name] for name in wanted]


def touched(name: str) -> frozenset[str]:
    """Returns what the tool `name` changes; nothing for one that is not registered."""
    tool = _tools.get(name)
    return tool.changes if tool else frozenset()


def known() -> frozenset[str]:
    """Returns the names of all tools there are, `request_input` included."""
    return frozenset(_tools) | {REQUEST_INPUT}


def allowed(
    inbound: Inbound | None, *, reads: Iterable[str] = EVERYTHING, changes: Iterable[str] = EVERYTHING
) -> frozenset[str]:
    """Returns the names of the tools for a turn that may read and change this much and no more.

    The owner's own turns (`inbound` is None) and callers' turns are offered different tools. May run a program once
    for the process, so not to be called on an event loop.
    """
    readable, changeable = frozenset(reads), frozenset(changes)
    names = {
        tool.name
        for tool in list(_tools.values())
        if tool.reads <= readable
        and tool.changes <= changeable
        and tool.offered(inbound)
        and not (tool.confirm and inbound is not None)
    }
    return frozenset(names | ({REQUEST_INPUT} if CALLER in changeable else set()))

"""Registry of the tools for agent turns. Packages register tools at start; policy chooses the tools of each turn.

Each tool declares the resources that it reads and changes, as sets of these words, so that policy can choose by them:

    workspace   files of the workspace that the turn may see, including MEMORY.md
    memory      MEMORY.md and the rows of the memory table
    skills      skills that callers can be granted
    caller      output to the other side of the conversation
    owner       output to the owner outside of the conversation
    processes   running programs
    network     connections to other hosts
    working     temporary notes on the turn's own request
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from inspect import getdoc
from pathlib import Path
from typing import Any

from volcanic.runtime.base import Inbound, Sink

# This tool asks the other side a question and ends the turn; the answer resumes the conversation. Every runner with
# tools provides this tool itself, so it is not registered here.
REQUEST_INPUT = "request_input"

WORKSPACE, MEMORY, CALLER, OWNER = "workspace", "memory", "caller", "owner"
PROCESSES, NETWORK, WORKING, SKILLS = "processes", "network", "working", "skills"
EVERYTHING = frozenset({WORKSPACE, MEMORY, CALLER, OWNER, PROCESSES, NETWORK, WORKING, SKILLS})


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """The context of a tool call: the conversation, the caller, and the parts of the turn that a tool may use."""

    session_id: int
    origin: str
    workspace: Path
    workspace_id: int | None = None
    # None in the owner's own turns.
    inbound: Inbound | None = None
    sink: Sink | None = None
    deadline: datetime | None = None
    # State that tools keep from one call to the next, until the turn ends.
    state: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


# Called as `function(context, **arguments)`; returns text or anything JSON can hold.
ToolFunction = Callable[..., Awaitable[Any]]
# Tells whether a turn of this kind can have the tool at all. Policy can only restrict the tools further.
Offered = Callable[[Inbound | None], bool]


class ToolError(Exception):
    """A tool failed. The model gets the error's text as the result and goes on."""


def always(_inbound: Inbound | None) -> bool:
    """Offers a tool in every turn."""
    return True


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A registered tool. `reads` and `changes` name the resources it uses, for policy and for the owner's screens."""

    name: str
    function: ToolFunction
    description: str
    reads: frozenset[str]
    changes: frozenset[str]
    offered: Offered = always
    # If true, each call of the tool needs the owner's confirmation.
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
    """Registers `function` as the tool `name`.

    `function` must be an async function with the ToolContext as its first parameter. The model fills in the other
    parameters, by their types and defaults. `description` tells the model the purpose of the tool; the default is the
    function's docstring up to `Args:`, which describe the parameters. `offered` is called for each turn. With
    `confirm`, a call ends the turn with a question to the owner, and the tool runs after the owner's yes; only the
    owner's own turns have such a tool.

    Raises ValueError for REQUEST_INPUT, for an unknown resource and for a name that another tool has.
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
        raise ValueError(f"{name} names unknown resources: {', '.join(unknown)}")
    if _tools.setdefault(name, tool) != tool:
        raise ValueError(f"another tool is already registered as {name}")
    return tool


def unregister(name: str) -> None:
    """Removes the tool `name` from the registry, if registered."""
    _tools.pop(name, None)


def get(names: Iterable[str]) -> list[Tool]:
    """Returns the tools with these names, sorted. Skips `request_input`; raises LookupError for unknown names."""
    wanted = sorted(set(names) - {REQUEST_INPUT})
    if unknown := [name for name in wanted if name not in _tools]:
        raise LookupError(f"no such tool: {', '.join(unknown)}")
    return [_tools[name] for name in wanted]


def touched(name: str) -> frozenset[str]:
    """Returns the resources that the tool `name` changes; an empty set for an unknown tool."""
    tool = _tools.get(name)
    return tool.changes if tool else frozenset()


def known() -> frozenset[str]:
    """Returns the names of all tools, `request_input` included."""
    return frozenset(_tools) | {REQUEST_INPUT}


def allowed(
    inbound: Inbound | None, *, reads: Iterable[str] = EVERYTHING, changes: Iterable[str] = EVERYTHING
) -> frozenset[str]:
    """Returns the names of the tools for a turn that may read and change only these resources.

    The owner's own turns (`inbound` is None) and callers' turns are offered different tools. The first call in a
    process may test the sandbox by running a program, which blocks: do not call this function on an event loop.
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

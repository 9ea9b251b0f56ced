"""The tools an agent turn can be given. Packages register theirs when they start; policy names those of each turn."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from typing import Any

# Asks the other side a question and ends the turn; their answer resumes it. Every runner that has tools provides it
# itself, so it is not registered here.
REQUEST_INPUT = "request_input"


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """On whose behalf a tool runs."""

    session_id: int
    origin: str
    workspace: Path


# Called as `function(context, **arguments)`; returns text or anything JSON can hold.
ToolFunction = Callable[..., Awaitable[Any]]


class ToolError(Exception):
    """A tool could not do what it was asked: the model is told this text and goes on."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A registered tool. `reads` and `changes` name what it touches, for policy and for the owner to see."""

    name: str
    function: ToolFunction
    description: str
    reads: frozenset[str]
    changes: frozenset[str]


_tools: dict[str, Tool] = {}


def register(
    name: str,
    function: ToolFunction,
    *,
    reads: frozenset[str] = frozenset(),
    changes: frozenset[str] = frozenset(),
    description: str = "",
) -> Tool:
    """Makes `function` known as the tool `name`.

    It is an async function whose first parameter is the ToolContext; the other parameters, their types and defaults
    are what the model may fill in. `description`, else the function's docstring up to its
    `Args:` (which tell about the parameters), tells the model what it is for.
    """
    if name == REQUEST_INPUT:
        raise ValueError(f"{REQUEST_INPUT} is provided by the runner")
    tool = Tool(
        name=name,
        function=function,
        description=description or (getdoc(function) or "").partition("\nArgs:")[0].strip(),
        reads=reads,
        changes=changes,
    )
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


def known() -> frozenset[str]:
    """Returns the names that a turn can be given, `request_input` included."""
    return frozenset(_tools) | {REQUEST_INPUT}

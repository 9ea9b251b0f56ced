"""Helpers for tests of runners: a recording sink, past turns, and the messages that a provider got."""

import json
from collections.abc import Callable
from typing import Any

from tests.openai_server import OpenAIServer, Reply
from volcanic.runtime.base import Outcome, PastTurn, Turn
from volcanic.runtime.prompt import unframe
from volcanic.runtime.tools import REQUEST_INPUT, Tool, ToolContext

MakeTurn = Callable[..., Turn]
RegisterTool = Callable[..., Tool]


class RecordingSink:
    """A sink that records its calls. `shown` is the text that a reader would see now."""

    def __init__(self) -> None:
        self.deltas: list[tuple[str, bool]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.artifacts: list[dict[str, Any]] = []
        self.shown = ""

    async def text(self, delta: str, *, restart: bool = False) -> None:
        self.deltas.append((delta, restart))
        self.shown = delta if restart else self.shown + delta

    async def tool_call(self, name: str, arguments: dict[str, Any]) -> None:
        self.calls.append((name, arguments))

    async def artifact(self, artifact: dict[str, Any]) -> None:
        self.artifacts.append(artifact)


async def add(context: ToolContext, a: int, b: int = 2) -> dict[str, Any]:
    """Adds two numbers.

    Args:
        a: The first one.
        b: The second one.
    """
    return {"sum": a + b, "for": context.origin}


def past_turn(outcome: Outcome) -> PastTurn:
    """Returns a finished turn in the form in which the next turn reads it from the database."""
    stored = json.loads(json.dumps({"messages": outcome.messages, "pending": outcome.pending}))
    return PastTurn(origin="task-1", **stored)


def question(identifier: str, text: str) -> Reply:
    """Returns a model's reply that asks the caller a question."""
    return Reply(calls=((identifier, REQUEST_INPUT, json.dumps({"question": text})),))


def said(server: OpenAIServer) -> list[tuple[str, str]]:
    """Returns the role and text of each message in the last request, without frames; for a question its text."""
    lines = []
    for message in server.requests[-1]["messages"]:
        content = message.get("content") or ""
        for call in message.get("tool_calls") or []:
            content = json.loads(call["function"]["arguments"]).get("question", content)
        lines.append((message["role"], unframe(content)))
    return lines

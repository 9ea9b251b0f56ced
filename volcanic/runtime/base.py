"""The contract between a turn and whatever runs it. Nothing here knows a model, a protocol or a database."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable


class TurnState(StrEnum):
    """How a turn can end."""

    COMPLETED = "completed"
    INPUT_REQUIRED = "input_required"
    FAILED = "failed"
    REJECTED = "rejected"


@dataclass(frozen=True, kw_only=True)
class PastTurn:
    """A finished turn of the session: `messages` and `pending` as its runner's Outcome gave them, through JSON."""

    origin: str
    messages: list[Any]
    pending: Any = None


@dataclass(frozen=True, kw_only=True)
class Inbound:
    """Says that a turn was started by an external agent, and by which.

    `scope` tells callers apart for good (a name can be given away and made anew): it begins the scope of its sessions.
    `notifier` tells whether the owner wants to be notified out of such turns. `notes` names the turn's working memory,
    "" for none: a triage turn reads the request and leaves notes on it there.
    """

    caller: str
    scope: str
    notifier: bool = False
    notes: str = ""

    @property
    def inbox(self) -> str:
        """The folder in the workspace where the caller's files are; no other caller's turns see it."""
        return f"inbox/{self.caller}"


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One run of the agent loop, started by one prompt.

    `prompt` is the text for the model, already framed as coming from an external agent; `text` is what the other side
    wrote, bare. `answers` is the past turn whose open question this turn's text answers, if any; it is the last
    element of `history` then. `tools` names the tools this turn may use: policy chose them, never the text. `inbound`
    is None for the owner's own turns.
    """

    session_id: int
    origin: str
    workspace: Path
    prompt: str
    text: str
    tools: frozenset[str]
    deadline: datetime
    history: Sequence[PastTurn] = ()
    answers: PastTurn | None = None
    # The message that started the turn, in its wire form.
    message: dict[str, Any] = field(default_factory=dict)
    workspace_id: int | None = None
    inbound: Inbound | None = None
    # What the owner wants of this kind of turn: a skill's instructions. Goes before the workspace's own files.
    instructions: str = ""


class Sink(Protocol):
    """Takes what a turn produces while it runs."""

    async def text(self, delta: str, *, restart: bool = False) -> None:
        """Takes a piece of the answer. `restart` drops what came before: a new answer begins (after tool calls)."""

    async def tool_call(self, name: str, arguments: dict[str, Any]) -> None:
        """Takes note of a tool call that is about to run."""

    async def artifact(self, artifact: dict[str, Any]) -> None:
        """Takes a whole artifact in the wire's 1.0 form (`artifactId`, `parts`, …)."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a turn ended.

    `text` is the answer (completed), the question (input required), or what to tell the other side (failed, rejected):
    it is shown to them as it is, after redaction. `messages` are the turn's new messages, JSON; `pending` says which
    open question the next turn of the same origin answers.
    """

    state: TurnState
    text: str = ""
    messages: list[Any] = field(default_factory=list)
    pending: Any = None
    # A status message to go with a completed turn, beside the answer.
    message: str = ""


class TurnFailedError(Exception):
    """The turn failed in a way the other side may be told: its text, redacted, becomes the task's status message."""


T = TypeVar("T")


@runtime_checkable
class Writer(Protocol):
    """What a runner with a model can do besides running turns."""

    async def write(self, *, instructions: str, prompt: str, output: type[T]) -> T:
        """Returns what the model makes of `prompt` in the form of `output`, a pydantic model or a dataclass.

        Without tools and outside any session. Raises TurnFailedError when the model fails, or its output does not fit.
        """


class Runner(Protocol):
    """Runs turns. Made once for each worker process; `run` is called on that process's one event loop."""

    async def run(self, turn: Turn, sink: Sink) -> Outcome:
        """Runs `turn` to its end and returns how it ended.

        It is cancelled (asyncio.CancelledError) when the task is canceled or the deadline passes, and must then end
        its tool calls and model requests. Raises TurnFailedError for what the other side may know; anything else is
        told to them only as an unexpected failure.
        """

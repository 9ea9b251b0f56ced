"""Contract between turns and runners: data classes and protocols. Nothing here knows a model, A2A or a database."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable


class TurnState(StrEnum):
    """The states in which a turn can end."""

    COMPLETED = "completed"
    INPUT_REQUIRED = "input_required"
    FAILED = "failed"
    REJECTED = "rejected"


@dataclass(frozen=True, kw_only=True)
class PastTurn:
    """A finished turn of the session. `messages` and `pending` come from its Outcome, stored as JSON."""

    origin: str
    messages: list[Any]
    pending: Any = None


@dataclass(frozen=True, kw_only=True)
class Inbound:
    """The external agent that started a turn.

    `scope` identifies the caller permanently, while a name can be reused for another caller; the scopes of the caller's
    sessions begin with `scope`. `notifier` tells whether the turn may leave notifications for the owner. `notes` names
    the turn's working memory, where a triage turn leaves notes on the request; "" means no working memory.
    """

    caller: str
    scope: str
    notifier: bool = False
    notes: str = ""

    @property
    def inbox(self) -> str:
        """Folder of the caller's files in the workspace. Turns of other callers can't see this folder."""
        return f"inbox/{self.caller}"


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One pass of the agent loop, started by one prompt.

    `prompt` is the text for the model, already framed as coming from an external agent. `text` is the other side's
    text without a frame. `answers` is the past turn whose open question this turn's text answers, or None; that past
    turn is then the last element of `history`. `tools` names the tools that the turn may use; policy chooses them and
    never the text. `inbound` is None for the owner's own turns.
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
    # The message that started the turn, in A2A's JSON form.
    message: dict[str, Any] = field(default_factory=dict)
    workspace_id: int | None = None
    inbound: Inbound | None = None
    # Instructions of the owner for this kind of turn, such as a skill's. They precede the workspace's own files.
    instructions: str = ""


class Sink(Protocol):
    """Receives the output of a turn while the turn runs."""

    async def text(self, delta: str, *, restart: bool = False) -> None:
        """Receives a piece of the answer. `restart` drops all earlier text: a new answer begins (after tool calls)."""

    async def tool_call(self, name: str, arguments: dict[str, Any]) -> None:
        """Receives a tool call that is about to run."""

    async def artifact(self, artifact: dict[str, Any]) -> None:
        """Receives a whole artifact in the JSON form of A2A 1.0 (`artifactId`, `parts`, …)."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a turn.

    `text` is the answer (completed), the question (input required), or the reason (failed, rejected). The other side
    gets `text` after redaction. `messages` are the turn's new messages as JSON values. `pending` describes the open
    question that the next turn of the same origin answers.
    """

    state: TurnState
    text: str = ""
    messages: list[Any] = field(default_factory=list)
    pending: Any = None
    # A status message for a completed turn, in addition to the answer.
    message: str = ""


class TurnFailedError(Exception):
    """The turn failed. The error's text, redacted, becomes the task's status message for the other side."""


T = TypeVar("T")


@runtime_checkable
class Writer(Protocol):
    """A runner with a model, which can produce structured output besides running turns."""

    async def write(self, *, instructions: str, prompt: str, output: type[T]) -> T:
        """Returns the model's answer to `prompt` as an instance of `output`, a pydantic model or a dataclass.

        The model gets no tools and no session. Raises TurnFailedError if the model fails or its output does not fit.
        """


class Runner(Protocol):
    """Runs turns. Each worker process creates one runner; `run` is called on that process's one event loop."""

    async def run(self, turn: Turn, sink: Sink) -> Outcome:
        """Runs `turn` to its end and returns its outcome.

        The coroutine is canceled (asyncio.CancelledError) when the task is canceled or the deadline passes, and must
        then end its tool calls and model requests. Raises TurnFailedError with a text for the other side. The other
        side sees any other error only as an unexpected failure.
        """

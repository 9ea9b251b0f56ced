"""Handlers: only what the operator lists, only what can be called, and the one that the documentation shows."""

import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from pytest_django.fixtures import Settings

from trust.handlers import handler
from volcanic.runtime.base import Outcome, PastTurn, Sink, Turn, TurnFailedError, TurnState
from volcanic.settings.env import BASE_DIR

HERE = "tests.trust.test_handlers"


class Collected:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.said = ""

    async def text(self, delta: str, *, restart: bool = False) -> None:
        """Keeps it."""
        self.said = delta if restart else self.said + delta

    async def tool_call(self, name: str, arguments: dict[str, Any]) -> None:
        """Handlers call no tools."""

    async def artifact(self, artifact: dict[str, Any]) -> None:
        """Not here."""


def turn_of(text: str, workspace: Path, **members: Any) -> Turn:
    deadline = timezone.now() + timedelta(minutes=1)
    return Turn(
        session_id=1,
        origin="task:1",
        workspace=workspace,
        prompt=text,
        text=text,
        tools=frozenset(),
        deadline=deadline,
        **members,
    )


async def fine(turn: Turn, sink: Sink) -> Outcome:
    """A handler."""
    return Outcome(state=TurnState.COMPLETED, text=turn.text)


class Fine:
    """Its instances are handlers; it is none."""

    async def __call__(self, turn: Turn, sink: Sink) -> Outcome:
        """Answers."""
        return Outcome(state=TurnState.COMPLETED)


instance = Fine()
no_function = "text"


def not_async(turn: Turn, sink: Sink) -> Outcome:
    """Would hold up the loop."""
    return Outcome(state=TurnState.COMPLETED)


async def takes_one(turn: Turn) -> Outcome:
    """Could not be called."""
    return Outcome(state=TurnState.COMPLETED)


async def takes_more(turn: Turn, sink: Sink, more: int) -> Outcome:
    """Could not be called."""
    return Outcome(state=TurnState.COMPLETED)


def _messages() -> list[checks.CheckMessage]:
    # Other checks look at the machine: whether it has a sandbox.
    return [message for message in checks.run_checks() if str(message.id).startswith("trust.")]


def test_nothing_is_offered_at_first(settings: Settings) -> None:
    assert settings.SKILL_HANDLERS == []
    with pytest.raises(LookupError):
        handler(f"{HERE}.fine")


def test_a_listed_handler_is_loaded(settings: Settings) -> None:
    settings.SKILL_HANDLERS = [f"{HERE}.fine", f"{HERE}.instance"]
    assert handler(f"{HERE}.fine") is handler(f"{HERE}.fine") is sys.modules[HERE].fine
    assert handler(f"{HERE}.instance") is sys.modules[HERE].instance
    assert _messages() == []


def test_what_is_not_listed_is_not_even_imported(settings: Settings) -> None:
    """A path in a row is not enough: a module could do anything when it is imported."""
    settings.SKILL_HANDLERS = [f"{HERE}.fine"]
    assert "this" not in sys.modules
    for path in ("this.s", "os.system", "", f"{HERE}.Fine", f"{HERE}.fine ", "fine"):
        with pytest.raises(LookupError):
            handler(path)
    assert "this" not in sys.modules
    # One that was loaded before and is taken off the list.
    handler(f"{HERE}.fine")
    settings.SKILL_HANDLERS = []
    with pytest.raises(LookupError):
        handler(f"{HERE}.fine")


@pytest.mark.parametrize(
    "path",
    [
        *("no.such.module", "nodots", "", "json.no_such_name"),
        *(f"{HERE}.{name}" for name in ("not_async", "takes_one", "takes_more", "no_function", "Fine")),
    ],
)
def test_what_can_not_be_called_is_an_error_of_the_check(settings: Settings, path: str) -> None:
    settings.SKILL_HANDLERS = [f"{HERE}.fine", path]
    with pytest.raises(ImproperlyConfigured):
        handler(path)
    (error,) = _messages()
    assert (error.id, error.hint) == ("trust.E002", "See docs/skills.md.")
    assert path in error.msg


async def test_the_handler_of_the_documentation(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The very code of docs/skills.md, under the name that the text gives it."""
    text = (BASE_DIR / "docs/skills.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "rooms.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    settings.SKILL_HANDLERS = re.findall(r"`SKILL_HANDLERS=([\w.]+)`", text)
    assert _messages() == []
    find_room = handler("rooms.find_room")

    with pytest.raises(TurnFailedError, match="The list of rooms is missing"):
        await find_room(turn_of("for 12 people", tmp_path), Collected())
    (tmp_path / "rooms.csv").write_text("name,seats\nAttic,4\nHall,120\nGarden,12\n")
    sink = Collected()
    outcome = await find_room(turn_of("for 12 people", tmp_path), sink)
    assert (outcome.state, outcome.text, sink.said) == (TurnState.COMPLETED, "Hall, Garden", "Hall, Garden")
    assert (await find_room(turn_of("for 999", tmp_path), Collected())).text == "None is large enough."

    asked = await find_room(turn_of("a room, please", tmp_path), Collected())
    assert (asked.state, asked.text) == (TurnState.INPUT_REQUIRED, "For how many people?")
    past = PastTurn(origin="task:1", messages=asked.messages, pending=asked.pending)
    answer = turn_of("100", tmp_path, history=[past], answers=past)
    assert (await find_room(answer, Collected())).text == "Hall"

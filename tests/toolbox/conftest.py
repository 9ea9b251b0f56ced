"""Fixtures of the toolbox's tests: a workspace folder with files that callers must not reach, and tool contexts."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.volcanic.turns import RecordingSink
from volcanic.runtime.base import Inbound
from volcanic.runtime.tools import ToolContext
from volcanic.toolbox.sandbox import sandbox

MakeContext = Callable[..., ToolContext]

OWNERS = ("AGENTS.md", "CLAUDE.md", "PERSONA.md", "MEMORY.md")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Gives a workspace folder with the owner's files and two callers' inboxes, and a secret beside the folder."""
    folder = tmp_path / "workspace"
    for name in ("inbox/travel-bot", "inbox/other-bot", "notes/deep", ".volcanic", ".git"):
        (folder / name).mkdir(parents=True)
    for name in OWNERS:
        (folder / name).write_text(f"{name} of the owner\n")
    (folder / "notes/trip.md").write_text("Rome\nParis\n")
    (folder / "inbox/travel-bot/own.txt").write_text("mine")
    (folder / "inbox/other-bot/theirs.txt").write_text("theirs-0815")
    (folder / ".volcanic/state.json").write_text("{}")
    (tmp_path / "secret.txt").write_text("secret-4711")
    return folder


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def caller_context(folder: Path, sink: RecordingSink) -> MakeContext:
    """Gives a function that makes a tool's context in a turn of the caller travel-bot."""

    def make(**given: Any) -> ToolContext:
        values: dict[str, Any] = {
            "session_id": 1,
            "origin": "task:1",
            "workspace": folder,
            "inbound": Inbound(caller="travel-bot", scope="a2a-1", notifier=True),
            "sink": sink,
            "deadline": datetime.now(UTC) + timedelta(hours=1),
        }
        return ToolContext(**values | given)

    return make


@pytest.fixture
def inbound(caller_context: MakeContext) -> ToolContext:
    """Gives a tool's context in a caller's turn."""
    return caller_context()


@pytest.fixture
def own(caller_context: MakeContext) -> ToolContext:
    """Gives a tool's context in the owner's own turn."""
    return caller_context(inbound=None, origin="owner")


@pytest.fixture
def needs_sandbox() -> None:
    """Skips the test where bubblewrap does not work. Fails the test there with REQUIRE_SANDBOX=1."""
    if not sandbox().works:
        if os.environ.get("REQUIRE_SANDBOX") == "1":
            pytest.fail(f"REQUIRE_SANDBOX is set, and there is none: {sandbox().problem}")
        pytest.skip(sandbox().problem)

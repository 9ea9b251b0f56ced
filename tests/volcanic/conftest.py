"""Fixtures of the tests of `volcanic`: no real model can be called, and turns need no database."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pytest_django.fixtures import Settings

from tests.openai_server import OpenAIServer
from tests.volcanic.chores import AddJob
from tests.volcanic.peers import Names
from tests.volcanic.turns import MakeTurn, RecordingSink, RegisterTool, add
from volcanic.models import NotificationDelivery, Workspace
from volcanic.outbound import backend
from volcanic.runtime import tools
from volcanic.runtime.base import Turn
from volcanic.runtime.prompt import frame_inbound

if TYPE_CHECKING:
    from volcanic.runtime.assistant import AssistantRunner


@pytest.fixture(autouse=True)
def no_model_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes pydantic-ai refuse every request to a provider. The scripted model makes no such request."""
    import pydantic_ai.models

    monkeypatch.setattr(pydantic_ai.models, "ALLOW_MODEL_REQUESTS", False)


@pytest.fixture
def openai_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """Gives a local server in OpenAI's place, and allows the requests of pydantic-ai to it."""
    import pydantic_ai.models

    monkeypatch.setattr(pydantic_ai.models, "ALLOW_MODEL_REQUESTS", True)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key-of-the-suite")
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def make_turn(tmp_path: Path) -> MakeTurn:
    """Gives a function that makes a turn from a caller's text. Other members of the turn can be given by name."""

    def make(text: str, **given: Any) -> Turn:
        values: dict[str, Any] = {
            "session_id": 1,
            "origin": "task-1",
            "workspace": tmp_path,
            "prompt": frame_inbound(caller="travel-bot", text=text),
            "text": text,
            "tools": frozenset({"request_input"}),
            "deadline": datetime.now(UTC) + timedelta(hours=1),
        }
        return Turn(**values | given)

    return make


@pytest.fixture
def register() -> Iterator[RegisterTool]:
    """Gives a function that registers a tool until the end of the test."""
    names: list[str] = []

    def register(name: str, function: Callable[..., Awaitable[Any]]) -> tools.Tool:
        names.append(name)
        return tools.register(name, function)

    yield register
    for name in names:
        tools.unregister(name)


@pytest.fixture
async def runner(
    openai_server: OpenAIServer, settings: Settings, register: RegisterTool
) -> AsyncIterator["AssistantRunner"]:
    """Gives the default runner with the local server as its provider, and registers the tool `add`."""
    from volcanic.runtime.assistant import AssistantRunner

    register("add", add)
    settings.MODEL = "openai-chat:test"
    async with AssistantRunner() as runner:
        yield runner


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Replaces the system's resolver by one that resolves `peer.test` to this machine."""
    names = Names()
    names.answers["peer.test"] = [["127.0.0.1"]]
    monkeypatch.setattr(backend, "resolve", names.resolve)
    return names


@pytest.fixture
def peer_opened(names: Names, settings: Settings) -> None:
    """Allows requests to `peer.test` by plain HTTP and to this machine."""
    settings.ALLOWED_PRIVATE_HOSTS = ["peer.test"]


@pytest.fixture
def add_job(transactional_db: None, workspace: Workspace) -> AddJob:
    """Gives a function that adds a job to a queue and returns its key."""

    def add_job(queue: str = "one", text: str = "job") -> int:
        return NotificationDelivery.objects.create(workspace=workspace, channel=queue, url="x", text=text).pk

    return add_job

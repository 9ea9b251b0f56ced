"""The official SDK's client as the caller, on every interface that the card declares."""

import asyncio
import uuid
from typing import Any

import pytest
from a2a.client import Client
from a2a.types import a2a_pb2
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError

from tests.conftest import Keyed
from tests.product import Product
from tests.sdk import INTERFACES, sdk_client


def _request(text: str, *, at_once: bool = False, **members: Any) -> a2a_pb2.SendMessageRequest:
    return a2a_pb2.SendMessageRequest(
        message=a2a_pb2.Message(
            role=a2a_pb2.ROLE_USER, message_id=str(uuid.uuid4()), parts=[a2a_pb2.Part(text=text)], **members
        ),
        configuration=a2a_pb2.SendMessageConfiguration(return_immediately=at_once),
    )


async def _task(client: Client, request: a2a_pb2.SendMessageRequest) -> a2a_pb2.Task:
    (event,) = [event async for event in client.send_message(request)]
    return event.task


@pytest.fixture
def key(transactional_db: None, product: Product, friend: Keyed) -> str:
    """The friend's key, with the product running."""
    product.revive()
    return friend.key


@pytest.mark.parametrize(("binding", "version"), INTERFACES)
async def test_a_whole_conversation(key: str, product: Product, binding: str, version: str) -> None:
    """Send, multi-turn, get, list, cancel, errors."""
    async with sdk_client(product, key, binding, version, streaming=False) as client:
        task = await _task(client, _request("hello"))
        assert task.status.state == a2a_pb2.TASK_STATE_COMPLETED
        assert task.artifacts[0].parts[0].text == "hello"

        asked = await _task(client, _request("ask: which day?"))
        assert asked.status.state == a2a_pb2.TASK_STATE_INPUT_REQUIRED
        assert asked.status.message.parts[0].text == "which day?"
        answered = await _task(client, _request("monday", task_id=asked.id, context_id=asked.context_id))
        assert answered.artifacts[0].parts[0].text == "You said: monday"
        assert await client.get_task(a2a_pb2.GetTaskRequest(id=asked.id)) == answered

        running = await _task(client, _request("sleep: 600", at_once=True))
        canceled = await client.cancel_task(a2a_pb2.CancelTaskRequest(id=running.id))
        assert canceled.status.state == a2a_pb2.TASK_STATE_CANCELED
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(a2a_pb2.CancelTaskRequest(id=running.id))
        with pytest.raises(TaskNotFoundError):
            await client.get_task(a2a_pb2.GetTaskRequest(id=str(uuid.uuid4())))
        with pytest.raises(UnsupportedOperationError):
            await _task(client, _request("more", task_id=task.id))

        if version == "1.0":
            page = await client.list_tasks(a2a_pb2.ListTasksRequest(page_size=2))
            assert (page.total_size, len(page.tasks), bool(page.next_page_token)) == (3, 2, True)


@pytest.mark.parametrize(("binding", "version"), INTERFACES)
async def test_streams(key: str, product: Product, binding: str, version: str) -> None:
    """Stream, and subscribe from a second client to what waits for an answer."""
    async with (
        sdk_client(product, key, binding, version, streaming=True) as client,
        sdk_client(product, key, binding, version, streaming=True) as other,
    ):
        asked = [event async for event in client.send_message(_request("ask: ready?\nstream: 40"))]
        assert _state_in(asked[-1]) == a2a_pb2.TASK_STATE_INPUT_REQUIRED
        task = asked[0].task
        follows = asyncio.Event()
        second = asyncio.create_task(_last_state(other, task.id, follows))
        await follows.wait()
        answer = _request("yes", task_id=task.id, context_id=task.context_id)
        seen = [event async for event in client.send_message(answer)]
        assert "".join(map(_text_in, seen)) == " ".join(f"chunk {number}" for number in range(1, 41))
        assert _state_in(seen[-1]) == a2a_pb2.TASK_STATE_COMPLETED
        assert await second == a2a_pb2.TASK_STATE_COMPLETED


def _state_in(event: a2a_pb2.StreamResponse) -> int:
    """The state that a stream's event tells. The first event is the task, which may have gone on meanwhile."""
    return (event.task if event.HasField("task") else event.status_update).status.state


def _text_in(event: a2a_pb2.StreamResponse) -> str:
    """The text that a stream's event adds: what the task had when the stream began, or a piece of an artifact."""
    artifacts = event.task.artifacts if event.HasField("task") else [event.artifact_update.artifact]
    return "".join(part.text for artifact in artifacts for part in artifact.parts)


async def _last_state(client: Client, task_id: str, follows: asyncio.Event) -> int:
    state = 0
    async for event in client.subscribe(a2a_pb2.SubscribeToTaskRequest(id=task_id)):
        follows.set()
        state = _state_in(event)
    return state


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_the_extended_card(key: str, product: Product, binding: str) -> None:
    async with sdk_client(product, key, binding, "1.0", streaming=False) as client:
        card = await client.get_extended_agent_card(a2a_pb2.GetExtendedAgentCardRequest())
        assert card.capabilities.streaming
        assert [skill.id for skill in card.skills] == ["chat", "notify-user"]

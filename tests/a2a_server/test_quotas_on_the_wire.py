"""Quotas on the wire: the refusal in each binding, and the SDK's client."""

from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.types import a2a_pb2
from a2a.utils.errors import A2AError

from a2a_server.quotas import usage_count
from tests.a2a_server.stored import stored_rows
from tests.conftest import Keyed
from tests.product import Api, Product, message, state_of
from tests.waiting import PATIENCE
from trust.services import caller_set_limits

# For each quota the column that makes it bite at the second message, and what the first message does.
QUOTAS = {
    "maxRunningTasks": ("max_running_tasks", "sleep: 600", "WORKING"),
    "maxOpenContexts": ("max_open_contexts", "ask: well?", "INPUT_REQUIRED"),
    "maxStoredTasks": ("max_stored_tasks", "hello", "COMPLETED"),
}


def _refused(answer: dict[str, Any], quota: str) -> None:
    assert answer["error"]["code"] == -32000, answer
    assert f"Quota {quota} exceeded" in answer["error"]["message"]
    (info,) = answer["error"]["data"]
    assert (info["reason"], info["metadata"]["quota"]) == ("QUOTA_EXCEEDED", quota)
    assert (info["metadata"]["limit"], info["metadata"]["used"]) == ("1", "1")


@pytest.fixture
def full(api: Api, friend: Keyed, request: pytest.FixtureRequest) -> str:
    """A quota that the friend has used up, by name."""
    column, text, state = QUOTAS[request.param]
    caller_set_limits(caller=friend.caller, **{column: 1})
    api.wait(api.send(text, at_once=True)["id"], state)
    usage_count()
    return str(request.param)


@pytest.mark.parametrize("full", QUOTAS, indirect=True)
def test_over_a_quota_on_every_interface(api: Api, full: str) -> None:
    """A clear refusal in the binding's own shape, that names the quota and its value; no task and no other row."""
    before = stored_rows()
    params = {"message": message()}
    _refused(api.rpc("SendMessage", params), full)
    _refused(api.rpc("SendStreamingMessage", params), full)
    for path in ("/a2a/v1/message:send", "/a2a/v1/message:stream"):
        answer = api.http.post(path, json=params)
        assert answer.status_code == 429
        error = answer.json()["error"]
        assert (error["code"], error["status"]) == (429, "RESOURCE_EXHAUSTED")
        assert error["details"][0]["reason"] == "QUOTA_EXCEEDED"
        assert error["details"][0]["metadata"] == {"quota": full, "limit": "1", "used": "1"}
        assert full in error["message"]
    assert stored_rows() == before


@pytest.mark.parametrize("full", QUOTAS, indirect=True)
def test_over_a_quota_in_03(api: Api, full: str) -> None:
    before = stored_rows()
    old = {"kind": "message", "role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hi"}]}
    for method in ("message/send", "message/stream"):
        answer = api.rpc(method, {"message": old})
        assert answer["error"]["code"] == -32000
        assert full in answer["error"]["message"]
    body = {"request": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}}
    for path in ("message:send", "message:stream"):
        refused = api.http.post(f"/a2a/v0.3/v1/{path}", json=body)
        assert refused.status_code == 429, refused.text
        assert refused.json()["type"] == "QuotaExceededError"
        assert full in refused.json()["message"]
    assert stored_rows() == before


@pytest.fixture
def spent(transactional_db: None, product: Product, friend: Keyed) -> str:
    """The friend's key; it may store one task and has."""
    product.revive()
    caller_set_limits(caller=friend.caller, max_stored_tasks=1)
    with product.api(friend.key) as api:
        api.send("hello")
    usage_count()
    return friend.key


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize("streaming", [True, False])
async def test_the_sdk_client_sees_an_a2a_error(product: Product, spent: str, binding: str, streaming: bool) -> None:
    """Over REST the client knows only the specification's own errors, and tells the status of any other."""
    async with httpx.AsyncClient(headers={"X-API-Key": spent}, timeout=PATIENCE) as http:
        config = ClientConfig(httpx_client=http, streaming=streaming, supported_protocol_bindings=[binding])
        client = await create_client(product.url, config)
        request = a2a_pb2.SendMessageRequest(
            message=a2a_pb2.Message(role=a2a_pb2.ROLE_USER, message_id="m", parts=[a2a_pb2.Part(text="hi")])
        )
        with pytest.raises(A2AError, match=r"Quota maxStoredTasks exceeded|HTTP Error 429"):
            _ = [event async for event in client.send_message(request)]


def test_room_again_when_a_task_ends(api: Api, friend: Keyed) -> None:
    """And the same message that was refused is then taken."""
    caller_set_limits(caller=friend.caller, max_running_tasks=1)
    task = api.send("sleep: 600", at_once=True)
    params = {"message": message("hello")}
    _refused(api.rpc("SendMessage", params), "maxRunningTasks")
    api.result("CancelTask", {"id": task["id"]})
    assert state_of(api.result("SendMessage", params)["task"]) == "COMPLETED"


def test_files_over_the_quota_on_the_wire(api: Api, friend: Keyed) -> None:
    caller_set_limits(caller=friend.caller, max_inbox_bytes=10)
    part = {"raw": "eHh4eHh4eHh4eHh4", "filename": "x.txt"}  # 12 bytes
    answer = api.rpc("SendMessage", {"message": message(parts=[part])})
    (info,) = answer["error"]["data"]
    assert info["metadata"] == {"quota": "maxInboxBytes", "limit": "10", "used": "0"}
    refused = api.http.post("/a2a/v1/message:stream", json={"message": message(parts=[part])})
    assert refused.status_code == 429
    assert not any(stored_rows())

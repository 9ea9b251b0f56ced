"""A2A 0.3 callers, on both bindings."""

import uuid
from typing import Any

import pytest

from tests.product import Api, last_state, sse, state_of


def _old(text: str, **members: Any) -> dict[str, Any]:
    return {
        "kind": "message",
        "role": "user",
        "messageId": str(uuid.uuid4()),
        "parts": [{"kind": "text", "text": text}],
        **members,
    }


@pytest.mark.parametrize(
    "configuration", [None, {}, {"acceptedOutputModes": ["text"]}, {"blocking": True}, {"historyLength": 0}]
)
def test_a_send_waits_unless_told_not_to(api: Api, configuration: dict[str, Any] | None) -> None:
    """Served as 0.3 without a header, in the 0.3 shape, and blocking."""
    params = {"message": _old("hello")} | ({} if configuration is None else {"configuration": configuration})
    result = api.rpc("message/send", params)["result"]
    assert (result["kind"], result["status"]["state"]) == ("task", "completed")
    assert result["artifacts"][0]["parts"][0] == {"kind": "text", "text": "hello"}
    assert "task" not in result


def test_blocking_false_returns_at_once(api: Api) -> None:
    result = api.rpc("message/send", {"message": _old("sleep: 600"), "configuration": {"blocking": False}})["result"]
    assert result["status"]["state"] in ("submitted", "working")
    canceled = api.rpc("tasks/cancel", {"id": result["id"]})["result"]
    assert canceled["status"]["state"] == "canceled"
    assert api.rpc("tasks/cancel", {"id": result["id"]})["error"]["code"] == -32002
    assert api.rpc("tasks/get", {"id": result["id"]})["result"]["status"]["state"] == "canceled"


def test_a_question_and_its_answer(api: Api) -> None:
    task = api.rpc("message/send", {"message": _old("ask: which day?")})["result"]
    assert task["status"]["state"] == "input-required"
    task = api.rpc("message/send", {"message": _old("monday", taskId=task["id"])})["result"]
    assert task["artifacts"][0]["parts"][0]["text"] == "You said: monday"
    assert api.rpc("message/send", {"message": _old("again", taskId=task["id"])})["error"]["code"] == -32004


def test_a_stream(api: Api) -> None:
    """`kind`, lower-case states, `final` on the last status update."""
    body = {"jsonrpc": "2.0", "id": "s", "method": "message/stream", "params": {"message": _old("stream: 20")}}
    with api.http.stream("POST", "/a2a", json=body) as response:
        envelopes = list(sse(response))
    assert {envelope["id"] for envelope in envelopes} == {"s"}
    events = [envelope["result"] for envelope in envelopes]
    assert events[0]["kind"] == "task"
    assert {event["kind"] for event in events[1:]} == {"status-update", "artifact-update"}
    assert (events[-1]["status"]["state"], events[-1]["final"]) == ("completed", True)


def test_resubscribe(api: Api) -> None:
    """A task that waits can be followed, one that has ended is an error and no stream."""
    waiting = api.rpc("message/send", {"message": _old("ask: well?")})["result"]
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": {"id": waiting["id"]}}
    with api.http.stream("POST", "/a2a", json=body) as response:
        assert next(sse(response))["result"]["status"]["state"] == "input-required"
    done = api.rpc("message/send", {"message": _old("hello")})["result"]
    answer = api.http.post("/a2a", json=body | {"params": {"id": done["id"]}})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"]["code"] == -32004


@pytest.mark.parametrize(
    "params", [{}, {"message": {}}, {"message": {"role": "user", "messageId": "m", "parts": "x", "kind": "message"}}]
)
def test_bad_params(api: Api, params: dict[str, Any]) -> None:
    """-32602 and no traceback."""
    answer = api.rpc("message/send", params)
    assert answer["error"]["code"] == -32602
    assert api.rpc("tasks/get", {"id": "nope"})["error"]["code"] == -32001


@pytest.mark.parametrize(("base", "headers"), [("/a2a/v0.3/v1", {}), ("/a2a/v1", {"A2A-Version": "0.3"})])
def test_rest(api: Api, base: str, headers: dict[str, str]) -> None:
    """0.3 paths under the 0.3 interface, and under the 1.0 one when the header says so."""
    sent = {"request": {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "content": [{"text": "ask: well?"}]}}
    task = api.http.post(f"{base}/message:send", json=sent, headers=headers).json()["task"]
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    got = api.http.get(f"{base}/tasks/{task['id']}", headers=headers).json()
    assert got["status"]["message"]["content"][0]["text"] == "well?"
    canceled = api.http.post(f"{base}/tasks/{task['id']}:cancel", headers=headers).json()
    assert canceled["status"]["state"] == "TASK_STATE_CANCELLED"
    assert api.http.get(f"{base}/tasks/nope", headers=headers).status_code == 404
    ended = api.http.post(f"{base}/tasks/{task['id']}:subscribe", headers=headers)
    assert (ended.status_code, "json" in ended.headers["content-type"]) == (400, True)


def test_rest_without_a_header_by_the_shape_of_its_body(api: Api) -> None:
    """`content` is a member of 0.3, `parts` one of 1.0."""
    sent = {"message": {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "content": [{"text": "hello"}]}}
    task = api.http.post("/a2a/v1/message:send", json=sent).json()["task"]
    assert task["artifacts"][0]["parts"][0] == {"text": "hello"}
    new = {"message": {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": "hello"}]}}
    assert state_of(api.http.post("/a2a/v1/message:send", json=new).json()["task"]) == "COMPLETED"


def test_a_rest_stream(api: Api) -> None:
    sent = {"message": {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "content": [{"text": "hello"}]}}
    with api.http.stream("POST", "/a2a/v0.3/v1/message:stream", json=sent) as response:
        events = list(sse(response))
    assert "task" in events[0]
    assert last_state(events) == "COMPLETED"

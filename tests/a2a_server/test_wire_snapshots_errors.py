"""Errors on the wire as it is, in files: of keys, requests, tasks, limits and quotas, in each binding and version."""

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.a2a_server.wire import REST, REST_03, V03, V1, v03_message, v03_rest_message, v1_message
from tests.conftest import Keyed
from tests.recording import Wire
from trust.services import caller_set_limits


@pytest.mark.parametrize(
    ("verb", "path"),
    [("POST", "/a2a"), ("GET", f"{REST}/tasks"), ("GET", f"{REST_03}/tasks/x")],
    ids=["jsonrpc", "rest", "rest_03"],
)
def test_without_a_good_key(nobodys_wire: Wire, verb: str, path: str, snapshot: SnapshotAssertion) -> None:
    nobodys_wire.request(verb, path)
    nobodys_wire.request(verb, path, headers={"X-API-Key": "wrong"})
    nobodys_wire.request(verb, path, headers={"Authorization": "Bearer wrong"})
    assert nobodys_wire.exchanges() == snapshot


def test_errors_jsonrpc(wire: Wire, snapshot: SnapshotAssertion) -> None:
    """Of the envelope, the version, the parameters and the state of a task."""
    wire.request("POST", "/a2a", content="{", headers={"Content-Type": "application/json"})
    wire.request("POST", "/a2a", content="a=b", headers={"Content-Type": "application/x-www-form-urlencoded"})
    wire.request("POST", "/a2a", body=[])
    wire.request("GET", "/a2a")
    wire.rpc("GetTask", {"id": "nope"}, jsonrpc="1.0")
    wire.rpc("NoSuchMethod")
    call = {"jsonrpc": "2.0", "id": "a", "method": "GetTask", "params": {"id": "nope"}}
    wire.request("POST", "/a2a", body=call, headers={"A2A-Version": "0.5"})
    wire.request("POST", "/a2a", body=call, headers=V03)
    wire.request("POST", "/a2a", body=call | {"method": "tasks/get"}, headers=V1)
    wire.rpc("GetTask", {"id": "nope"})
    wire.rpc("GetTask", {"id": 7})
    wire.rpc("GetTask")
    wire.rpc("GetTask", [])
    wire.rpc("SendMessage", {})
    wire.rpc("SendMessage", {"message": {"parts": []}})
    wire.rpc("SendMessage", {"message": v1_message(1, taskId="nope")})
    wire.rpc("SendMessage", {"message": v1_message(1, parts=[{"text": "x", "mediaType": "image/png"}])})
    wire.rpc("SendStreamingMessage", {"message": v1_message(1, contextId="not/allowed")})
    wire.rpc("ListTasks", {"status": "TASK_STATE_LOST"})
    wire.rpc("ListTasks", {"pageToken": "nonsense"})
    task = wire.rpc("SendMessage", {"message": v1_message(1)})["task"]
    wire.rpc("CancelTask", {"id": task["id"]})
    wire.rpc("SendMessage", {"message": v1_message(2, taskId=task["id"])})
    wire.rpc("CreateTaskPushNotificationConfig", {"taskId": task["id"], "url": "http://10.0.0.1/"})
    wire.rpc("GetTaskPushNotificationConfig", {"taskId": task["id"], "id": "nope"})
    assert wire.exchanges() == snapshot


def test_errors_rest(wire: Wire, snapshot: SnapshotAssertion) -> None:
    """The same, as REST has them."""
    send, json = f"{REST}/message:send", {"Content-Type": "application/json"}
    wire.request("POST", send, content="{", headers=json)
    wire.request("POST", send, content="a=b", headers={"Content-Type": "application/x-www-form-urlencoded"})
    wire.request("POST", send, body=[])
    wire.request("GET", send)
    wire.request("GET", f"{REST}/nowhere")
    wire.request("GET", f"{REST}/tasks/nope", headers={"A2A-Version": "0.5"})
    wire.request("GET", f"{REST}/tasks/nope")
    wire.request("POST", send, body={})
    wire.request("POST", send, body={"message": {"parts": []}})
    wire.request("POST", send, body={"message": v1_message(1, taskId="nope")})
    wire.request("POST", send, body={"message": v1_message(1, parts=[{"text": "x", "mediaType": "image/png"}])})
    wire.request("POST", f"{REST}/message:stream", body={"message": v1_message(1, contextId="not/allowed")})
    wire.request("GET", f"{REST}/tasks", query={"status": "TASK_STATE_LOST"})
    wire.request("GET", f"{REST}/tasks", query={"pageToken": "nonsense"})
    task = wire.request("POST", send, body={"message": v1_message(1)})["task"]
    wire.request("POST", f"{REST}/tasks/{task['id']}:cancel")
    wire.request("POST", send, body={"message": v1_message(2, taskId=task["id"])})
    configs = f"{REST}/tasks/{task['id']}/pushNotificationConfigs"
    wire.request("POST", configs, body={"url": "http://10.0.0.1/"})
    wire.request("GET", f"{configs}/nope")
    assert wire.exchanges() == snapshot


def test_errors_in_03(wire: Wire, snapshot: SnapshotAssertion) -> None:
    wire.rpc("tasks/get", {"id": "nope"})
    wire.rpc("tasks/get", {})
    wire.rpc("message/send", {"message": {}})
    wire.rpc("message/stream", {"message": v03_message(1, taskId="nope")})
    wire.rpc("tasks/resubscribe", {"id": "nope"})
    task = wire.rpc("message/send", {"message": v03_message(1)})
    wire.rpc("tasks/cancel", {"id": task["id"]})
    wire.rpc("message/send", {"message": v03_message(2, taskId=task["id"])})
    wire.rpc("tasks/pushNotificationConfig/get", {"id": task["id"], "pushNotificationConfigId": "nope"})
    assert wire.exchanges() == snapshot


def test_errors_rest_03(wire: Wire, snapshot: SnapshotAssertion) -> None:
    send = f"{REST_03}/message:send"
    wire.request("POST", send, content="{", headers={"Content-Type": "application/json"})
    wire.request("GET", f"{REST_03}/tasks/nope")
    wire.request("POST", send, body={"message": {}})
    wire.request("POST", f"{REST_03}/message:stream", body={"message": v03_rest_message(1, taskId="nope")})
    wire.request("POST", f"{REST_03}/tasks/nope:subscribe")
    task = wire.request("POST", send, body={"message": v03_rest_message(1)})["task"]
    wire.request("POST", f"{REST_03}/tasks/{task['id']}:cancel")
    wire.request("POST", send, body={"message": v03_rest_message(2, taskId=task["id"])})
    assert wire.exchanges() == snapshot


def test_over_the_limit_of_requests(wire: Wire, friend: Keyed, snapshot: SnapshotAssertion) -> None:
    caller_set_limits(caller=friend.caller, requests_per_minute=1)
    wire.http.get(f"{REST}/tasks")
    wire.rpc("GetTask", {"id": "nope"})
    wire.request("GET", f"{REST}/tasks")
    wire.rpc("tasks/get", {"id": "nope"})
    wire.request("GET", f"{REST_03}/tasks/nope")
    assert wire.exchanges() == snapshot


def test_over_a_quota(wire: Wire, friend: Keyed, snapshot: SnapshotAssertion) -> None:
    caller_set_limits(caller=friend.caller, max_open_contexts=1)
    wire.rpc("SendMessage", {"message": v1_message(1, "ask: which day?")})
    wire.rpc("SendMessage", {"message": v1_message(2)})
    wire.request("POST", f"{REST}/message:send", body={"message": v1_message(2)})
    wire.rpc("message/send", {"message": v03_message(2)})
    wire.request("POST", f"{REST_03}/message:send", body={"message": v03_rest_message(2)})
    assert wire.exchanges() == snapshot

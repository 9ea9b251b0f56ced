"""The wire as it is, in files: a change of it shows in a diff.

One file for each test in `__snapshots__/`. `pytest --snapshot-update tests/a2a_server/test_wire_snapshots.py` writes
them anew.
"""

import base64
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import httpx
import pytest
from syrupy.assertion import SnapshotAssertion

from tests.conftest import Keyed
from tests.product import Api, Product
from tests.receiver import Receiver
from tests.recording import Wire, WireFile, notifications
from tests.reviewing import Decision, decide
from tests.waiting import wait_for
from trust.services import caller_set_limits, grant_add, webhook_secret_rotate

PUBLIC_CARD = "/.well-known/agent-card.json"
REST, REST_03 = "/a2a/v1", "/a2a/v0.3/v1"
V1, V03 = {"A2A-Version": "1.0"}, {"A2A-Version": "0.3"}


@pytest.fixture
def snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """The test's file, as JSON."""
    return snapshot.use_extension(WireFile)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A webhook that takes everything."""
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def wire(api: Api, receiver: Receiver) -> Wire:
    """The friend's connection."""
    return Wire(api.http, receiver=receiver.url)


@pytest.fixture
def strange_wire(strange: Api) -> Wire:
    """The stranger's connection."""
    return Wire(strange.http)


@pytest.fixture
def nobodys_wire(api: Api, product: Product) -> Iterator[Wire]:
    """A connection without a key."""
    with httpx.Client(base_url=product.url, timeout=30) as http:
        yield Wire(http)


def _message(number: int, text: str = "hello", **members: Any) -> dict[str, Any]:
    return {"role": "ROLE_USER", "messageId": f"m-{number}", "parts": [{"text": text}], **members}


def _old(number: int, text: str = "hello", **members: Any) -> dict[str, Any]:
    """A message in the 0.3 form of JSON-RPC."""
    parts = [{"kind": "text", "text": text}]
    return {"kind": "message", "role": "user", "messageId": f"m-{number}", "parts": parts, **members}


def _old_rest(number: int, text: str = "hello", **members: Any) -> dict[str, Any]:
    """A message in the 0.3 form of REST."""
    return {"role": "ROLE_USER", "messageId": f"m-{number}", "content": [{"text": text}], **members}


@contextmanager
def _worker_held(product: Product) -> Iterator[Callable[[], None]]:
    """The worker does nothing until it is told to go on: what is submitted is seen before it is begun."""

    def go_on() -> None:
        product.signal("worker", signal.SIGCONT)

    product.signal("worker", signal.SIGSTOP)
    try:
        yield go_on
    finally:
        go_on()


def _read_from_the_start(product: Product, stream: AbstractContextManager[Iterator[Any]]) -> None:
    """Reads a stream to its end; its first event is from before the worker began."""
    with _worker_held(product) as go_on, stream as events:
        next(events)
        go_on()
        list(events)


# Cards.


@pytest.mark.parametrize("path", [PUBLIC_CARD, "/.well-known/agent.json"], ids=["new_name", "old_name"])
def test_public_card(nobodys_wire: Wire, path: str, snapshot: SnapshotAssertion) -> None:
    card = nobodys_wire.http.get(path)
    nobodys_wire.request("GET", path)
    nobodys_wire.request("GET", path, headers={"If-None-Match": card.headers["etag"]})
    assert nobodys_wire.exchanges() == snapshot


def test_extended_card(wire: Wire, friend: Keyed, snapshot: SnapshotAssertion) -> None:
    grant_add(caller=friend.caller, slug="query-availability")
    wire.rpc("GetExtendedAgentCard")
    wire.request("GET", f"{REST}/extendedAgentCard")
    assert wire.exchanges() == snapshot


def test_extended_card_in_03(wire: Wire, snapshot: SnapshotAssertion) -> None:
    wire.rpc("agent/getAuthenticatedExtendedCard")
    wire.request("GET", f"{REST_03}/card")
    assert wire.exchanges() == snapshot


# Tasks, over JSON-RPC.


def test_send_message_jsonrpc(wire: Wire, snapshot: SnapshotAssertion) -> None:
    task = wire.rpc("SendMessage", {"message": _message(1, metadata={"n": 7}), "metadata": {"x": [1.5, None, "y"]}})
    context = task["task"]["contextId"]
    short = {"message": _message(2, contextId=context), "configuration": {"historyLength": 0}}
    wire.rpc("SendMessage", short, id="text")
    assert wire.exchanges() == snapshot


def test_send_message_at_once_and_cancel_jsonrpc(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    with _worker_held(product):
        sent = {"message": _message(1), "configuration": {"returnImmediately": True}}
        task = wire.rpc("SendMessage", sent)["task"]
        wire.rpc("CancelTask", {"id": task["id"]})
    wire.rpc("CancelTask", {"id": task["id"]})
    assert wire.exchanges() == snapshot


def test_stream_jsonrpc(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    _read_from_the_start(product, wire.rpc_stream("SendStreamingMessage", {"message": _message(1)}))
    assert wire.exchanges() == snapshot


def test_chunks_of_a_stream(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    """What is appended is put together: where the text is parted is the clock's doing."""
    _read_from_the_start(product, wire.rpc_stream("SendStreamingMessage", {"message": _message(1, "stream: 10")}))
    assert wire.exchanges() == snapshot


def test_get_and_list_jsonrpc(wire: Wire, snapshot: SnapshotAssertion) -> None:
    first = wire.rpc("SendMessage", {"message": _message(1)})["task"]
    wire.rpc("SendMessage", {"message": _message(2, contextId=first["contextId"])})
    wire.rpc("GetTask", {"id": first["id"]})
    wire.rpc("GetTask", {"id": first["id"], "historyLength": 0})
    wanted = {"contextId": first["contextId"], "pageSize": 1}
    page = wire.rpc("ListTasks", wanted)
    wire.rpc("ListTasks", wanted | {"pageToken": page["nextPageToken"], "includeArtifacts": True})
    wire.rpc("ListTasks", {"status": "TASK_STATE_FAILED"})
    assert wire.exchanges() == snapshot


def test_a_question_and_its_answer_jsonrpc(wire: Wire, snapshot: SnapshotAssertion) -> None:
    task = wire.rpc("SendMessage", {"message": _message(1, "ask: which day?")})["task"]
    wire.rpc("SendMessage", {"message": _message(2, "monday", taskId=task["id"])})
    assert wire.exchanges() == snapshot


def test_subscribe_jsonrpc(wire: Wire, snapshot: SnapshotAssertion) -> None:
    task = wire.rpc("SendMessage", {"message": _message(1, "ask: which day?")})["task"]
    with wire.rpc_stream("SubscribeToTask", {"id": task["id"]}) as events:
        next(events)
        wire.rpc("SendMessage", {"message": _message(2, "monday", taskId=task["id"])})
        list(events)
    wire.rpc("SubscribeToTask", {"id": task["id"]})
    assert wire.exchanges() == snapshot


def test_push_configs_jsonrpc(wire: Wire, receiver: Receiver, snapshot: SnapshotAssertion) -> None:
    task = wire.rpc("SendMessage", {"message": _message(1)})["task"]
    config = {"taskId": task["id"], "url": f"{receiver.url}/one"}
    made = wire.rpc("CreateTaskPushNotificationConfig", config)
    authentication = {"scheme": "Bearer", "credentials": "secret"}
    wire.rpc(
        "CreateTaskPushNotificationConfig", config | {"id": "mine", "token": "t", "authentication": authentication}
    )
    key = {"taskId": task["id"], "id": made["id"]}
    wire.rpc("GetTaskPushNotificationConfig", key)
    page = wire.rpc("ListTaskPushNotificationConfigs", {"taskId": task["id"], "pageSize": 1})
    wire.rpc("ListTaskPushNotificationConfigs", {"taskId": task["id"], "pageToken": page["nextPageToken"]})
    wire.rpc("DeleteTaskPushNotificationConfig", key)
    wire.rpc("GetTaskPushNotificationConfig", key)
    assert wire.exchanges() == snapshot


# Tasks, over REST.


def test_send_message_rest(wire: Wire, snapshot: SnapshotAssertion) -> None:
    wire.request("POST", f"{REST}/message:send", body={"message": _message(1)}, headers=V1)
    assert wire.exchanges() == snapshot


def test_send_message_at_once_and_cancel_rest(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    with _worker_held(product):
        sent = {"message": _message(1), "configuration": {"returnImmediately": True}}
        task = wire.request("POST", f"{REST}/message:send", body=sent)["task"]
        wire.request("POST", f"{REST}/tasks/{task['id']}:cancel")
    wire.request("POST", f"{REST}/tasks/{task['id']}:cancel")
    assert wire.exchanges() == snapshot


def test_stream_rest(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    _read_from_the_start(product, wire.stream("POST", f"{REST}/message:stream", body={"message": _message(1)}))
    assert wire.exchanges() == snapshot


def test_get_and_list_rest(wire: Wire, snapshot: SnapshotAssertion) -> None:
    sent = {"message": _message(1, contextId="mine")}
    first = wire.request("POST", f"{REST}/message:send", body=sent)["task"]
    wire.request("POST", f"{REST}/message:send", body={"message": _message(2, contextId="mine")})
    wire.request("GET", f"{REST}/tasks/{first['id']}")
    wire.request("GET", f"{REST}/tasks/{first['id']}", query={"historyLength": "0"})
    wanted = {"contextId": "mine", "pageSize": "1"}
    page = wire.request("GET", f"{REST}/tasks", query=wanted)
    wanted |= {"pageToken": page["nextPageToken"], "includeArtifacts": "true"}
    wire.request("GET", f"{REST}/tasks", query=wanted)
    wire.request("GET", f"{REST}/tasks", query={"status": "TASK_STATE_FAILED"})
    assert wire.exchanges() == snapshot


def test_subscribe_rest(wire: Wire, snapshot: SnapshotAssertion) -> None:
    task = wire.request("POST", f"{REST}/message:send", body={"message": _message(1, "ask: which day?")})["task"]
    with wire.stream("POST", f"{REST}/tasks/{task['id']}:subscribe") as events:
        next(events)
        wire.request("POST", f"{REST}/message:send", body={"message": _message(2, "monday", taskId=task["id"])})
        list(events)
    wire.request("POST", f"{REST}/tasks/{task['id']}:subscribe")
    assert wire.exchanges() == snapshot


def test_push_configs_rest(wire: Wire, receiver: Receiver, snapshot: SnapshotAssertion) -> None:
    task = wire.request("POST", f"{REST}/message:send", body={"message": _message(1)})["task"]
    configs = f"{REST}/tasks/{task['id']}/pushNotificationConfigs"
    config = {"url": f"{receiver.url}/one"}
    made = wire.request("POST", configs, body=config)
    authentication = {"scheme": "Bearer", "credentials": "secret"}
    wire.request("POST", configs, body=config | {"id": "mine", "token": "t", "authentication": authentication})
    wire.request("GET", f"{configs}/{made['id']}")
    page = wire.request("GET", configs, query={"pageSize": "1"})
    wire.request("GET", configs, query={"pageToken": page["nextPageToken"]})
    wire.request("DELETE", f"{configs}/{made['id']}")
    wire.request("GET", f"{configs}/{made['id']}")
    assert wire.exchanges() == snapshot


# What becomes of a task.


def test_a_task_that_fails(wire: Wire, snapshot: SnapshotAssertion) -> None:
    wire.rpc("SendMessage", {"message": _message(1, "fail: no luck")})
    wire.request("POST", f"{REST}/message:send", body={"message": _message(2, "fail: no luck")})
    wire.rpc("message/send", {"message": _old(3, "fail: no luck")})
    assert wire.exchanges() == snapshot


def test_a_task_that_waits_for_the_owner(strange_wire: Wire, strange: Api, snapshot: SnapshotAssertion) -> None:
    task = strange_wire.rpc("SendMessage", {"message": _message(1, "tidy up")})["task"]
    strange_wire.request("GET", f"{REST}/tasks/{task['id']}")
    strange_wire.rpc("tasks/get", {"id": task["id"]})
    strange_wire.rpc("SendMessage", {"message": _message(2, "please", taskId=task["id"])})
    decide(task, Decision.APPROVE)
    strange.wait(task["id"], "COMPLETED")
    strange_wire.rpc("GetTask", {"id": task["id"]})
    assert strange_wire.exchanges() == snapshot


def test_a_task_that_the_owner_declines(strange_wire: Wire, strange: Api, snapshot: SnapshotAssertion) -> None:
    task = strange_wire.rpc("SendMessage", {"message": _message(1, "tidy up")})["task"]
    with strange_wire.rpc_stream("SubscribeToTask", {"id": task["id"]}) as events:
        next(events)
        decide(task, Decision.DECLINE, "Not today.")
        list(events)
    strange_wire.rpc("tasks/get", {"id": task["id"]})
    assert strange_wire.exchanges() == snapshot


def test_a_skill_that_was_not_granted(strange_wire: Wire, snapshot: SnapshotAssertion) -> None:
    strange_wire.rpc("SendMessage", {"message": _message(1), "metadata": {"skill": "chat"}})
    assert strange_wire.exchanges() == snapshot


def test_built_in_skills(wire: Wire, friend: Keyed, snapshot: SnapshotAssertion) -> None:
    """The one answers with data."""
    grant_add(caller=friend.caller, slug="query-availability")
    for number, skill in enumerate(["notify-user", "query-availability"]):
        wire.rpc("SendMessage", {"message": _message(number, metadata={"skill": skill})})
    sent = {"message": _message(2), "metadata": {"skill": "query-availability"}}
    wire.request("POST", f"{REST}/message:send", body=sent)
    wire.rpc("message/send", {"message": _old(3), "metadata": {"skill": "query-availability"}})
    assert wire.exchanges() == snapshot


def test_files_both_ways(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    (product.folder / "workspaces" / "main").mkdir(parents=True, exist_ok=True)
    file = {"raw": base64.b64encode(b"one").decode(), "filename": "a.txt", "mediaType": "text/plain"}
    parts = [{"text": "ask: ready?"}, file]
    task = wire.rpc("SendMessage", {"message": _message(1, parts=parts)})["task"]
    send = f'tool: send {{"path": "inbox/friend/{task["id"]}/a.txt"}}'
    sent = wire.rpc("SendMessage", {"message": _message(2, send, contextId=task["contextId"])})["task"]
    wire.request("GET", f"{REST}/tasks/{sent['id']}")
    wire.rpc("tasks/get", {"id": sent["id"]})
    wire.request("GET", f"{REST_03}/tasks/{sent['id']}")
    assert wire.exchanges() == snapshot


# Webhooks.


def test_what_a_webhook_gets(wire: Wire, receiver: Receiver, friend: Keyed, snapshot: SnapshotAssertion) -> None:
    webhook_secret_rotate(caller=friend.caller)
    config = {"url": f"{receiver.url}/hook", "token": "t", "authentication": {"scheme": "Bearer", "credentials": "c"}}
    wire.rpc("SendMessage", {"message": _message(1), "configuration": {"taskPushNotificationConfig": config}})
    wait_for(lambda: receiver.states() == ["SUBMITTED", "WORKING", "COMPLETED"])
    assert notifications(receiver.received, receiver=receiver.url) == snapshot


def test_what_a_webhook_of_03_gets(wire: Wire, receiver: Receiver, snapshot: SnapshotAssertion) -> None:
    config = {"url": f"{receiver.url}/hook", "token": "t"}
    wire.rpc("message/send", {"message": _old(1), "configuration": {"pushNotificationConfig": config}})
    wait_for(lambda: receiver.states() == ["submitted", "working", "completed"])
    assert notifications(receiver.received, receiver=receiver.url) == snapshot


# Errors.


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
    wire.rpc("SendMessage", {"message": _message(1, taskId="nope")})
    wire.rpc("SendMessage", {"message": _message(1, parts=[{"text": "x", "mediaType": "image/png"}])})
    wire.rpc("SendStreamingMessage", {"message": _message(1, contextId="not/allowed")})
    wire.rpc("ListTasks", {"status": "TASK_STATE_LOST"})
    wire.rpc("ListTasks", {"pageToken": "nonsense"})
    task = wire.rpc("SendMessage", {"message": _message(1)})["task"]
    wire.rpc("CancelTask", {"id": task["id"]})
    wire.rpc("SendMessage", {"message": _message(2, taskId=task["id"])})
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
    wire.request("POST", send, body={"message": _message(1, taskId="nope")})
    wire.request("POST", send, body={"message": _message(1, parts=[{"text": "x", "mediaType": "image/png"}])})
    wire.request("POST", f"{REST}/message:stream", body={"message": _message(1, contextId="not/allowed")})
    wire.request("GET", f"{REST}/tasks", query={"status": "TASK_STATE_LOST"})
    wire.request("GET", f"{REST}/tasks", query={"pageToken": "nonsense"})
    task = wire.request("POST", send, body={"message": _message(1)})["task"]
    wire.request("POST", f"{REST}/tasks/{task['id']}:cancel")
    wire.request("POST", send, body={"message": _message(2, taskId=task["id"])})
    configs = f"{REST}/tasks/{task['id']}/pushNotificationConfigs"
    wire.request("POST", configs, body={"url": "http://10.0.0.1/"})
    wire.request("GET", f"{configs}/nope")
    assert wire.exchanges() == snapshot


def test_errors_in_03(wire: Wire, snapshot: SnapshotAssertion) -> None:
    wire.rpc("tasks/get", {"id": "nope"})
    wire.rpc("tasks/get", {})
    wire.rpc("message/send", {"message": {}})
    wire.rpc("message/stream", {"message": _old(1, taskId="nope")})
    wire.rpc("tasks/resubscribe", {"id": "nope"})
    task = wire.rpc("message/send", {"message": _old(1)})
    wire.rpc("tasks/cancel", {"id": task["id"]})
    wire.rpc("message/send", {"message": _old(2, taskId=task["id"])})
    wire.rpc("tasks/pushNotificationConfig/get", {"id": task["id"], "pushNotificationConfigId": "nope"})
    assert wire.exchanges() == snapshot


def test_errors_rest_03(wire: Wire, snapshot: SnapshotAssertion) -> None:
    send = f"{REST_03}/message:send"
    wire.request("POST", send, content="{", headers={"Content-Type": "application/json"})
    wire.request("GET", f"{REST_03}/tasks/nope")
    wire.request("POST", send, body={"message": {}})
    wire.request("POST", f"{REST_03}/message:stream", body={"message": _old_rest(1, taskId="nope")})
    wire.request("POST", f"{REST_03}/tasks/nope:subscribe")
    task = wire.request("POST", send, body={"message": _old_rest(1)})["task"]
    wire.request("POST", f"{REST_03}/tasks/{task['id']}:cancel")
    wire.request("POST", send, body={"message": _old_rest(2, taskId=task["id"])})
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
    wire.rpc("SendMessage", {"message": _message(1, "ask: which day?")})
    wire.rpc("SendMessage", {"message": _message(2)})
    wire.request("POST", f"{REST}/message:send", body={"message": _message(2)})
    wire.rpc("message/send", {"message": _old(2)})
    wire.request("POST", f"{REST_03}/message:send", body={"message": _old_rest(2)})
    assert wire.exchanges() == snapshot


# The forms of 0.3.


def test_tasks_in_03(wire: Wire, snapshot: SnapshotAssertion) -> None:
    wire.rpc("message/send", {"message": _old(1)})
    asked = wire.rpc("message/send", {"message": _old(2, "ask: which day?")})
    wire.rpc("message/send", {"message": _old(3, "monday", taskId=asked["id"])})
    wire.rpc("tasks/get", {"id": asked["id"]})
    wire.rpc("tasks/get", {"id": asked["id"], "historyLength": 1})
    asked = wire.rpc("message/send", {"message": _old(4, "ask: which day?")})
    wire.rpc("tasks/cancel", {"id": asked["id"]})
    assert wire.exchanges() == snapshot


def test_send_message_at_once_in_03(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    with _worker_held(product):
        wire.rpc("message/send", {"message": _old(1), "configuration": {"blocking": False}})
    assert wire.exchanges() == snapshot


def test_stream_in_03(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    _read_from_the_start(product, wire.rpc_stream("message/stream", {"message": _old(1)}))
    assert wire.exchanges() == snapshot


def test_chunks_of_a_stream_in_03(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    sent = {"message": _old(1, "stream: 10")}
    _read_from_the_start(product, wire.rpc_stream("message/stream", sent))
    assert wire.exchanges() == snapshot


def test_resubscribe_in_03(wire: Wire, snapshot: SnapshotAssertion) -> None:
    task = wire.rpc("message/send", {"message": _old(1, "ask: which day?")})
    with wire.rpc_stream("tasks/resubscribe", {"id": task["id"]}) as events:
        next(events)
        wire.rpc("message/send", {"message": _old(2, "monday", taskId=task["id"])})
        list(events)
    wire.rpc("tasks/resubscribe", {"id": task["id"]})
    assert wire.exchanges() == snapshot


def test_push_configs_in_03(wire: Wire, receiver: Receiver, snapshot: SnapshotAssertion) -> None:
    task = wire.rpc("message/send", {"message": _old(1)})
    config: dict[str, Any] = {"url": f"{receiver.url}/one"}
    method = "tasks/pushNotificationConfig"
    made = wire.rpc(f"{method}/set", {"taskId": task["id"], "pushNotificationConfig": config})
    authentication = {"schemes": ["Bearer"], "credentials": "secret"}
    config |= {"id": "mine", "token": "t", "authentication": authentication}
    wire.rpc(f"{method}/set", {"taskId": task["id"], "pushNotificationConfig": config})
    key = {"id": task["id"], "pushNotificationConfigId": made["pushNotificationConfig"]["id"]}
    wire.rpc(f"{method}/get", key)
    wire.rpc(f"{method}/list", {"id": task["id"]})
    wire.rpc(f"{method}/delete", key)
    wire.rpc(f"{method}/get", key)
    assert wire.exchanges() == snapshot


def test_tasks_rest_03(wire: Wire, snapshot: SnapshotAssertion) -> None:
    """Under their own address, and under that of 1.0 for those who say so or send what only 0.3 has."""
    send = f"{REST_03}/message:send"
    wire.request("POST", send, body={"message": _old_rest(1)})
    task = wire.request("POST", send, body={"request": _old_rest(2, "ask: which day?")})["task"]
    wire.request("GET", f"{REST_03}/tasks/{task['id']}")
    wire.request("POST", f"{REST_03}/tasks/{task['id']}:cancel")
    wire.request("GET", f"{REST}/tasks/{task['id']}", headers=V03)
    wire.request("POST", f"{REST}/message:send", body={"message": _old_rest(3)})
    assert wire.exchanges() == snapshot


def test_stream_rest_03(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    _read_from_the_start(product, wire.stream("POST", f"{REST_03}/message:stream", body={"message": _old_rest(1)}))
    assert wire.exchanges() == snapshot


def test_subscribe_rest_03(wire: Wire, snapshot: SnapshotAssertion) -> None:
    sent = {"message": _old_rest(1, "ask: which day?")}
    task = wire.request("POST", f"{REST_03}/message:send", body=sent)["task"]
    with wire.stream("GET", f"{REST_03}/tasks/{task['id']}:subscribe") as events:
        next(events)
        answer = {"message": _old_rest(2, "monday", taskId=task["id"])}
        wire.request("POST", f"{REST_03}/message:send", body=answer)
        list(events)
    wire.request("GET", f"{REST_03}/tasks/{task['id']}:subscribe")
    assert wire.exchanges() == snapshot


def test_push_configs_rest_03(wire: Wire, receiver: Receiver, snapshot: SnapshotAssertion) -> None:
    """Nothing there deletes one."""
    task = wire.request("POST", f"{REST_03}/message:send", body={"message": _old_rest(1)})["task"]
    configs = f"{REST_03}/tasks/{task['id']}/pushNotificationConfigs"
    parent = f"tasks/{task['id']}"
    config = {"pushNotificationConfig": {"url": f"{receiver.url}/one"}}
    made = wire.request("POST", configs, body={"parent": parent, "config": config})
    wire.request("GET", f"{REST_03}/{made['name']}")
    wire.request("DELETE", f"{REST_03}/{made['name']}")
    wire.request("GET", configs)
    assert wire.exchanges() == snapshot

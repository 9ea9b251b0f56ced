"""The wire as it is, in files: cards, tasks, webhooks. A change of it shows in a diff.

One file for each test in `__snapshots__/`. `pytest --snapshot-update tests/a2a_server -k wire_snapshots` writes them
anew.
"""

import base64

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.a2a_server.wire import (
    REST,
    REST_03,
    V1,
    read_from_the_start,
    v03_message,
    v1_message,
    worker_held,
)
from tests.conftest import Keyed
from tests.product import Api, Product
from tests.receiver import Receiver
from tests.recording import Wire, notifications
from tests.reviewing import Decision, decide
from tests.waiting import wait_for
from trust.services import grant_add, webhook_secret_rotate

PUBLIC_CARD = "/.well-known/agent-card.json"


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


# Tasks, over JSON-RPC.


def test_send_message_jsonrpc(wire: Wire, snapshot: SnapshotAssertion) -> None:
    task = wire.rpc("SendMessage", {"message": v1_message(1, metadata={"n": 7}), "metadata": {"x": [1.5, None, "y"]}})
    context = task["task"]["contextId"]
    short = {"message": v1_message(2, contextId=context), "configuration": {"historyLength": 0}}
    wire.rpc("SendMessage", short, id="text")
    assert wire.exchanges() == snapshot


def test_send_message_at_once_and_cancel_jsonrpc(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    with worker_held(product):
        sent = {"message": v1_message(1), "configuration": {"returnImmediately": True}}
        task = wire.rpc("SendMessage", sent)["task"]
        wire.rpc("CancelTask", {"id": task["id"]})
    wire.rpc("CancelTask", {"id": task["id"]})
    assert wire.exchanges() == snapshot


def test_stream_jsonrpc(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    read_from_the_start(product, wire.rpc_stream("SendStreamingMessage", {"message": v1_message(1)}))
    assert wire.exchanges() == snapshot


def test_chunks_of_a_stream(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    """What is appended is put together: where the text is parted is the clock's doing."""
    read_from_the_start(product, wire.rpc_stream("SendStreamingMessage", {"message": v1_message(1, "stream: 10")}))
    assert wire.exchanges() == snapshot


def test_get_and_list_jsonrpc(wire: Wire, snapshot: SnapshotAssertion) -> None:
    first = wire.rpc("SendMessage", {"message": v1_message(1)})["task"]
    wire.rpc("SendMessage", {"message": v1_message(2, contextId=first["contextId"])})
    wire.rpc("GetTask", {"id": first["id"]})
    wire.rpc("GetTask", {"id": first["id"], "historyLength": 0})
    wanted = {"contextId": first["contextId"], "pageSize": 1}
    page = wire.rpc("ListTasks", wanted)
    wire.rpc("ListTasks", wanted | {"pageToken": page["nextPageToken"], "includeArtifacts": True})
    wire.rpc("ListTasks", {"status": "TASK_STATE_FAILED"})
    assert wire.exchanges() == snapshot


def test_a_question_and_its_answer_jsonrpc(wire: Wire, snapshot: SnapshotAssertion) -> None:
    task = wire.rpc("SendMessage", {"message": v1_message(1, "ask: which day?")})["task"]
    wire.rpc("SendMessage", {"message": v1_message(2, "monday", taskId=task["id"])})
    assert wire.exchanges() == snapshot


def test_subscribe_jsonrpc(wire: Wire, snapshot: SnapshotAssertion) -> None:
    task = wire.rpc("SendMessage", {"message": v1_message(1, "ask: which day?")})["task"]
    with wire.rpc_stream("SubscribeToTask", {"id": task["id"]}) as events:
        next(events)
        wire.rpc("SendMessage", {"message": v1_message(2, "monday", taskId=task["id"])})
        list(events)
    wire.rpc("SubscribeToTask", {"id": task["id"]})
    assert wire.exchanges() == snapshot


def test_push_configs_jsonrpc(wire: Wire, receiver: Receiver, snapshot: SnapshotAssertion) -> None:
    task = wire.rpc("SendMessage", {"message": v1_message(1)})["task"]
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
    wire.request("POST", f"{REST}/message:send", body={"message": v1_message(1)}, headers=V1)
    assert wire.exchanges() == snapshot


def test_send_message_at_once_and_cancel_rest(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    with worker_held(product):
        sent = {"message": v1_message(1), "configuration": {"returnImmediately": True}}
        task = wire.request("POST", f"{REST}/message:send", body=sent)["task"]
        wire.request("POST", f"{REST}/tasks/{task['id']}:cancel")
    wire.request("POST", f"{REST}/tasks/{task['id']}:cancel")
    assert wire.exchanges() == snapshot


def test_stream_rest(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    read_from_the_start(product, wire.stream("POST", f"{REST}/message:stream", body={"message": v1_message(1)}))
    assert wire.exchanges() == snapshot


def test_get_and_list_rest(wire: Wire, snapshot: SnapshotAssertion) -> None:
    sent = {"message": v1_message(1, contextId="mine")}
    first = wire.request("POST", f"{REST}/message:send", body=sent)["task"]
    wire.request("POST", f"{REST}/message:send", body={"message": v1_message(2, contextId="mine")})
    wire.request("GET", f"{REST}/tasks/{first['id']}")
    wire.request("GET", f"{REST}/tasks/{first['id']}", query={"historyLength": "0"})
    wanted = {"contextId": "mine", "pageSize": "1"}
    page = wire.request("GET", f"{REST}/tasks", query=wanted)
    wanted |= {"pageToken": page["nextPageToken"], "includeArtifacts": "true"}
    wire.request("GET", f"{REST}/tasks", query=wanted)
    wire.request("GET", f"{REST}/tasks", query={"status": "TASK_STATE_FAILED"})
    assert wire.exchanges() == snapshot


def test_subscribe_rest(wire: Wire, snapshot: SnapshotAssertion) -> None:
    task = wire.request("POST", f"{REST}/message:send", body={"message": v1_message(1, "ask: which day?")})["task"]
    with wire.stream("POST", f"{REST}/tasks/{task['id']}:subscribe") as events:
        next(events)
        wire.request("POST", f"{REST}/message:send", body={"message": v1_message(2, "monday", taskId=task["id"])})
        list(events)
    wire.request("POST", f"{REST}/tasks/{task['id']}:subscribe")
    assert wire.exchanges() == snapshot


def test_push_configs_rest(wire: Wire, receiver: Receiver, snapshot: SnapshotAssertion) -> None:
    task = wire.request("POST", f"{REST}/message:send", body={"message": v1_message(1)})["task"]
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
    wire.rpc("SendMessage", {"message": v1_message(1, "fail: no luck")})
    wire.request("POST", f"{REST}/message:send", body={"message": v1_message(2, "fail: no luck")})
    wire.rpc("message/send", {"message": v03_message(3, "fail: no luck")})
    assert wire.exchanges() == snapshot


def test_a_task_that_waits_for_the_owner(strange_wire: Wire, strange: Api, snapshot: SnapshotAssertion) -> None:
    task = strange_wire.rpc("SendMessage", {"message": v1_message(1, "tidy up")})["task"]
    strange_wire.request("GET", f"{REST}/tasks/{task['id']}")
    strange_wire.rpc("tasks/get", {"id": task["id"]})
    strange_wire.rpc("SendMessage", {"message": v1_message(2, "please", taskId=task["id"])})
    decide(task, Decision.APPROVE)
    strange.wait(task["id"], "COMPLETED")
    strange_wire.rpc("GetTask", {"id": task["id"]})
    assert strange_wire.exchanges() == snapshot


def test_a_task_that_the_owner_declines(strange_wire: Wire, strange: Api, snapshot: SnapshotAssertion) -> None:
    task = strange_wire.rpc("SendMessage", {"message": v1_message(1, "tidy up")})["task"]
    with strange_wire.rpc_stream("SubscribeToTask", {"id": task["id"]}) as events:
        next(events)
        decide(task, Decision.DECLINE, "Not today.")
        list(events)
    strange_wire.rpc("tasks/get", {"id": task["id"]})
    assert strange_wire.exchanges() == snapshot


def test_a_skill_that_was_not_granted(strange_wire: Wire, snapshot: SnapshotAssertion) -> None:
    strange_wire.rpc("SendMessage", {"message": v1_message(1), "metadata": {"skill": "chat"}})
    assert strange_wire.exchanges() == snapshot


def test_built_in_skills(wire: Wire, friend: Keyed, snapshot: SnapshotAssertion) -> None:
    """The one answers with data."""
    grant_add(caller=friend.caller, slug="query-availability")
    for number, skill in enumerate(["notify-user", "query-availability"]):
        wire.rpc("SendMessage", {"message": v1_message(number, metadata={"skill": skill})})
    sent = {"message": v1_message(2), "metadata": {"skill": "query-availability"}}
    wire.request("POST", f"{REST}/message:send", body=sent)
    wire.rpc("message/send", {"message": v03_message(3), "metadata": {"skill": "query-availability"}})
    assert wire.exchanges() == snapshot


def test_files_both_ways(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    (product.folder / "workspaces" / "main").mkdir(parents=True, exist_ok=True)
    file = {"raw": base64.b64encode(b"one").decode(), "filename": "a.txt", "mediaType": "text/plain"}
    parts = [{"text": "ask: ready?"}, file]
    task = wire.rpc("SendMessage", {"message": v1_message(1, parts=parts)})["task"]
    send = f'tool: send {{"path": "inbox/friend/{task["id"]}/a.txt"}}'
    sent = wire.rpc("SendMessage", {"message": v1_message(2, send, contextId=task["contextId"])})["task"]
    wire.request("GET", f"{REST}/tasks/{sent['id']}")
    wire.rpc("tasks/get", {"id": sent["id"]})
    wire.request("GET", f"{REST_03}/tasks/{sent['id']}")
    assert wire.exchanges() == snapshot


# Webhooks.


def test_what_a_webhook_gets(wire: Wire, receiver: Receiver, friend: Keyed, snapshot: SnapshotAssertion) -> None:
    webhook_secret_rotate(caller=friend.caller)
    config = {"url": f"{receiver.url}/hook", "token": "t", "authentication": {"scheme": "Bearer", "credentials": "c"}}
    wire.rpc("SendMessage", {"message": v1_message(1), "configuration": {"taskPushNotificationConfig": config}})
    wait_for(lambda: receiver.states() == ["SUBMITTED", "WORKING", "COMPLETED"])
    assert notifications(receiver.received, receiver=receiver.url) == snapshot

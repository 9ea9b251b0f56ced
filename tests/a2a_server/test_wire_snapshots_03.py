"""The wire of A2A 0.3 as it is, in files: the card, tasks, streams, webhooks."""

from typing import Any

from syrupy.assertion import SnapshotAssertion

from tests.a2a_server.wire import REST, REST_03, V03, read_from_the_start, v03_message, v03_rest_message, worker_held
from tests.product import Product
from tests.receiver import Receiver
from tests.recording import Wire, notifications
from tests.waiting import wait_for


def test_extended_card_in_03(wire: Wire, snapshot: SnapshotAssertion) -> None:
    wire.rpc("agent/getAuthenticatedExtendedCard")
    wire.request("GET", f"{REST_03}/card")
    assert wire.exchanges() == snapshot


def test_what_a_webhook_of_03_gets(wire: Wire, receiver: Receiver, snapshot: SnapshotAssertion) -> None:
    config = {"url": f"{receiver.url}/hook", "token": "t"}
    wire.rpc("message/send", {"message": v03_message(1), "configuration": {"pushNotificationConfig": config}})
    wait_for(lambda: receiver.states() == ["submitted", "working", "completed"])
    assert notifications(receiver.received, receiver=receiver.url) == snapshot


def test_tasks_in_03(wire: Wire, snapshot: SnapshotAssertion) -> None:
    wire.rpc("message/send", {"message": v03_message(1)})
    asked = wire.rpc("message/send", {"message": v03_message(2, "ask: which day?")})
    wire.rpc("message/send", {"message": v03_message(3, "monday", taskId=asked["id"])})
    wire.rpc("tasks/get", {"id": asked["id"]})
    wire.rpc("tasks/get", {"id": asked["id"], "historyLength": 1})
    asked = wire.rpc("message/send", {"message": v03_message(4, "ask: which day?")})
    wire.rpc("tasks/cancel", {"id": asked["id"]})
    assert wire.exchanges() == snapshot


def test_send_message_at_once_in_03(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    with worker_held(product):
        wire.rpc("message/send", {"message": v03_message(1), "configuration": {"blocking": False}})
    assert wire.exchanges() == snapshot


def test_stream_in_03(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    read_from_the_start(product, wire.rpc_stream("message/stream", {"message": v03_message(1)}))
    assert wire.exchanges() == snapshot


def test_chunks_of_a_stream_in_03(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    sent = {"message": v03_message(1, "stream: 10")}
    read_from_the_start(product, wire.rpc_stream("message/stream", sent))
    assert wire.exchanges() == snapshot


def test_resubscribe_in_03(wire: Wire, snapshot: SnapshotAssertion) -> None:
    task = wire.rpc("message/send", {"message": v03_message(1, "ask: which day?")})
    with wire.rpc_stream("tasks/resubscribe", {"id": task["id"]}) as events:
        next(events)
        wire.rpc("message/send", {"message": v03_message(2, "monday", taskId=task["id"])})
        list(events)
    wire.rpc("tasks/resubscribe", {"id": task["id"]})
    assert wire.exchanges() == snapshot


def test_push_configs_in_03(wire: Wire, receiver: Receiver, snapshot: SnapshotAssertion) -> None:
    task = wire.rpc("message/send", {"message": v03_message(1)})
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
    wire.request("POST", send, body={"message": v03_rest_message(1)})
    task = wire.request("POST", send, body={"request": v03_rest_message(2, "ask: which day?")})["task"]
    wire.request("GET", f"{REST_03}/tasks/{task['id']}")
    wire.request("POST", f"{REST_03}/tasks/{task['id']}:cancel")
    wire.request("GET", f"{REST}/tasks/{task['id']}", headers=V03)
    wire.request("POST", f"{REST}/message:send", body={"message": v03_rest_message(3)})
    assert wire.exchanges() == snapshot


def test_stream_rest_03(wire: Wire, product: Product, snapshot: SnapshotAssertion) -> None:
    read_from_the_start(
        product, wire.stream("POST", f"{REST_03}/message:stream", body={"message": v03_rest_message(1)})
    )
    assert wire.exchanges() == snapshot


def test_subscribe_rest_03(wire: Wire, snapshot: SnapshotAssertion) -> None:
    sent = {"message": v03_rest_message(1, "ask: which day?")}
    task = wire.request("POST", f"{REST_03}/message:send", body=sent)["task"]
    with wire.stream("GET", f"{REST_03}/tasks/{task['id']}:subscribe") as events:
        next(events)
        answer = {"message": v03_rest_message(2, "monday", taskId=task["id"])}
        wire.request("POST", f"{REST_03}/message:send", body=answer)
        list(events)
    wire.request("GET", f"{REST_03}/tasks/{task['id']}:subscribe")
    assert wire.exchanges() == snapshot


def test_push_configs_rest_03(wire: Wire, receiver: Receiver, snapshot: SnapshotAssertion) -> None:
    """Nothing there deletes one."""
    task = wire.request("POST", f"{REST_03}/message:send", body={"message": v03_rest_message(1)})["task"]
    configs = f"{REST_03}/tasks/{task['id']}/pushNotificationConfigs"
    parent = f"tasks/{task['id']}"
    config = {"pushNotificationConfig": {"url": f"{receiver.url}/one"}}
    made = wire.request("POST", configs, body={"parent": parent, "config": config})
    wire.request("GET", f"{REST_03}/{made['name']}")
    wire.request("DELETE", f"{REST_03}/{made['name']}")
    wire.request("GET", configs)
    assert wire.exchanges() == snapshot

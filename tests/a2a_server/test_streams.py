"""Streams: their order, their beginning and their end."""

import json
import signal
import socket
from itertools import pairwise
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings

from a2a_server.models import Task, TaskEvent, TaskState
from tests.conftest import Keyed
from tests.product import Api, Product, last_state, message, sse, state_of, text_of
from tests.waiting import PATIENCE, wait_for


def _kinds(events: list[dict[str, Any]]) -> list[str]:
    return [next(iter(event)) for event in events]


def _text(events: list[dict[str, Any]]) -> str:
    """Puts a streamed `response` together, as a client does."""
    text = ""
    for event in events:
        if "artifactUpdate" in event:
            update = event["artifactUpdate"]
            piece = "".join(part["text"] for part in update["artifact"]["parts"])
            text = text + piece if update.get("append") else piece
        elif "task" in event:
            for artifact in event["task"].get("artifacts", []):
                text = "".join(part["text"] for part in artifact["parts"])
    return text


def test_a_stream_begins_with_the_task_and_ends_with_its_end(api: Api) -> None:
    """§3.1.2: task, then updates; the first chunk of an artifact is no append; the last event is terminal."""
    with api.stream("SendStreamingMessage", {"message": message("stream: 100")}) as events:
        seen = list(events)
    assert _kinds(seen)[0] == "task"
    assert set(_kinds(seen)[1:]) == {"statusUpdate", "artifactUpdate"}
    artifacts = [event["artifactUpdate"] for event in seen if "artifactUpdate" in event]
    assert "append" not in artifacts[0]
    assert all(update["append"] for update in artifacts[1:])
    assert [update.get("lastChunk", False) for update in artifacts] == [False] * (len(artifacts) - 1) + [True]
    assert len(artifacts) > 2
    assert state_of(seen[-1]["statusUpdate"]) == "COMPLETED"
    task = seen[0]["task"]
    for event in seen[1:]:
        (update,) = event.values()
        assert (update["taskId"], update["contextId"]) == (task["id"], task["contextId"])
    final = api.get(task["id"])
    assert _text(seen) == final["artifacts"][0]["parts"][0]["text"]


def test_text_is_written_at_most_ten_times_a_second(api: Api) -> None:
    """Between two writes there are 100 ms at least; only the end comes at once."""
    task = api.send("stream: 60")
    events = TaskEvent.objects.filter(task_id=task["id"], payload__has_key="artifactUpdate").order_by("seq")
    times = list(events.values_list("created_at", flat=True))
    assert len(times) > 2
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(times[:-1])]
    assert min(gaps) >= 0.095


def test_a_late_subscriber_sees_the_same(api: Api) -> None:
    """The snapshot, then what is new; every stream gets all events, each under its own request id."""
    with api.stream("SendStreamingMessage", {"message": message("stream: 30000")}, request_id="first") as events:
        first = [next(events) for _ in range(3)]
        task_id = first[0]["task"]["id"]
        body = {"jsonrpc": "2.0", "id": "second", "method": "SubscribeToTask", "params": {"id": task_id}}
        with api.http.stream("POST", "/a2a", json=body) as response:
            late = sse(response)
            envelopes = [next(late) for _ in range(3)]
            api.result("CancelTask", {"id": task_id})
            envelopes += late
        first += list(events)
    assert {envelope["id"] for envelope in envelopes} == {"second"}
    second = [envelope["result"] for envelope in envelopes]
    assert _kinds(second)[0] == "task"
    assert _text(second) == _text(first)
    assert second[-1] == first[-1]
    tail = second[1:]
    assert first[-len(tail) :] == tail


def test_a_stream_ends_when_the_task_asks(api: Api) -> None:
    with api.stream("SendStreamingMessage", {"message": message("ask: well?")}) as events:
        seen = list(events)
    assert last_state(seen) == "INPUT_REQUIRED"
    answer = {"message": message("fine", taskId=seen[0]["task"]["id"])}
    with api.stream("SendStreamingMessage", answer) as events:
        seen = list(events)
    assert state_of(seen[0]["task"]) in ("SUBMITTED", "WORKING", "COMPLETED")
    assert last_state(seen) == "COMPLETED"


def test_a_subscriber_to_a_waiting_task_gets_the_snapshot_and_what_follows(api: Api) -> None:
    """Parked tasks can be followed."""
    task = api.send("ask: well?")
    with api.stream("SubscribeToTask", {"id": task["id"]}) as events:
        assert next(events)["task"] == task
        api.send("fine", taskId=task["id"])
        rest = list(events)
    assert [state_of(event["statusUpdate"]) for event in rest if "statusUpdate" in event] == [
        "SUBMITTED",
        "WORKING",
        "COMPLETED",
    ]


@pytest.mark.parametrize("verb", ["GET", "POST"])
@pytest.mark.parametrize("colon", [":", "%3A"])
def test_subscribe_over_rest_by_both_verbs(api: Api, verb: str, colon: str) -> None:
    """POST and GET, the colon encoded or not."""
    task = api.send("ask: well?")
    url = f"/a2a/v1/tasks/{task['id']}{colon}subscribe"
    with api.http.stream(verb, url, headers={"A2A-Version": "1.0"}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert next(sse(response))["task"]["id"] == task["id"]


def test_stream_headers(api: Api) -> None:
    """Nothing on the way may buffer."""
    with api.http.stream("POST", "/a2a/v1/message:stream", json={"message": message()}) as response:
        assert response.headers["x-accel-buffering"] == "no"
        assert response.headers["cache-control"] == "no-cache"
        assert list(sse(response))


@pytest.mark.parametrize("script", ["hello", "fail: no luck"])
def test_subscribe_to_a_task_that_has_ended_is_an_error_and_no_stream(api: Api, script: str) -> None:
    """-32004 / 400 with a JSON content type."""
    task = api.send(script)
    answer = api.http.post(
        "/a2a", json={"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task["id"]}}
    )
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"]["code"] == -32004
    answer = api.http.post(f"/a2a/v1/tasks/{task['id']}:subscribe")
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/a2a+json")


@pytest.mark.parametrize("body", [{}, {"message": {"parts": []}}, {"message": message(taskId="nope")}])
def test_what_is_wrong_with_a_streaming_request_is_a_plain_error(api: Api, body: dict[str, Any]) -> None:
    """Until the first event is ready the answer is a normal HTTP error."""
    answer = api.http.post("/a2a/v1/message:stream", json=body)
    assert answer.status_code in (400, 404)
    assert "error" in answer.json()
    old = api.rpc("message/stream", {"message": {"kind": "message", "messageId": "x", "role": "user", "parts": []}})
    assert "error" in old


def test_a_reader_that_goes_does_not_stop_the_run(api: Api, product: Product, friend: Keyed) -> None:
    """The task goes on, and the next stream gets the rest."""
    params = {"message": message("stream: 30000")}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}
    with (
        httpx.Client(base_url=product.url, headers={"X-API-Key": friend.key}, timeout=PATIENCE) as http,
        http.stream("POST", "/a2a", json=body) as response,
    ):
        task = next(sse(response))["result"]["task"]
    with api.stream("SubscribeToTask", {"id": task["id"]}) as events:
        seen = [next(events) for _ in range(4)]
        api.result("CancelTask", {"id": task["id"]})
        seen += events
    assert _kinds(seen)[2:4] == ["artifactUpdate"] * 2
    text = _text(seen)
    assert text == " ".join(f"chunk {number}" for number in range(1, text.count("chunk") + 1))
    assert state_of(seen[-1]["statusUpdate"]) == "CANCELED"
    assert "Traceback" not in product.log("web")


def test_a_caller_that_stops_waiting_does_not_stop_the_run(api: Api, product: Product, friend: Keyed) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message("sleep: 1")}})
    head = f"POST /a2a HTTP/1.1\r\nHost: x\r\nX-API-Key: {friend.key}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", product.port), timeout=PATIENCE) as raw:
        raw.sendall((head + body).encode())
        task = wait_for(Task.objects.filter(state=TaskState.WORKING).first)
    assert text_of(api.wait(str(task.pk), "COMPLETED")) == "Done."


def test_a_slow_reader_holds_nobody_up(api: Api) -> None:
    """One that reads nothing, of an answer that no buffer on the way holds, and one that reads all."""
    answer = "x" * 8_000_000
    task = api.send(f"ask: ready?\n{answer}")
    with (
        api.stream("SubscribeToTask", {"id": task["id"], "historyLength": 0}) as idle,
        api.stream("SubscribeToTask", {"id": task["id"], "historyLength": 0}) as events,
    ):
        next(idle), next(events)
        api.send("yes", taskId=task["id"], at_once=True)
        assert _text(list(events)) == answer
        assert state_of(api.send("hello")) == "COMPLETED"


def test_many_silent_streams_leave_nothing_behind(api: Api, product: Product, friend: Keyed) -> None:
    """Idle streams hold no database connection, and when their clients die the server is as before."""
    product.signal("web", signal.SIGKILL)  # connections that others left in its pool are no streams'
    product.start_web()
    task = api.send("ask: well?")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task["id"]}}).encode()
    limits = httpx.Limits(max_connections=None)
    with httpx.Client(base_url=product.url, headers={"X-API-Key": friend.key}, limits=limits, timeout=PATIENCE) as http:
        streams = [http.send(http.build_request("POST", "/a2a", content=body), stream=True) for _ in range(100)]
        assert {stream.status_code for stream in streams} == {200}
        # A few threads keep theirs, and have all ask through them.
        assert 0 < product.connections("web") <= django_settings.DB_THREADS
        assert state_of(api.send()) == "COMPLETED"
        for stream in streams:
            stream.close()
    wait_for(lambda: state_of(api.send()) == "COMPLETED")

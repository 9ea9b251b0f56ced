"""Messages: valid and invalid parts and parameters, duplicates, hops, metadata."""

from typing import Any

import pytest

from tests.product import Api, message, question_of, state_of, text_of
from volcanic.models import Turn


def _message(**members: Any) -> dict[str, Any]:
    return {"message": {name: value for name, value in message(**members).items() if value is not None}}


@pytest.mark.parametrize(
    "members",
    [
        {"parts": []},
        {"parts": None},
        {"parts": "hi"},
        {"parts": [{}]},
        {"parts": [{"mediaType": "application/json"}]},
        {"parts": [{"kind": "file"}]},
        {"parts": [{"text": "a"}, {"metadata": {}}]},
        {"role": None},
        {"role": "ROLE_NOBODY"},
        {"role": "ROLE_AGENT"},
        {"messageId": None},
        {"messageId": ""},
        {"contextId": "has space"},
        {"contextId": "x" * 101},
        {"contextId": "ä"},
        {"metadata": "text"},
        {"metadata": {"volcanic.hops": "two"}},
        {"metadata": {"volcanic.hops": -1}},
        {"metadata": {"volcanic.hops": 1.5}},
        {"metadata": {"volcanic.hops": True}},
    ],
)
def test_invalid_params(api: Api, members: dict[str, Any]) -> None:
    """-32602 on JSON-RPC, 400 on REST, and no task."""
    assert api.error("SendMessage", _message(**members)) == -32602
    assert api.http.post("/a2a/v1/message:send", json=_message(**members)).status_code == 400
    assert api.result("ListTasks")["totalSize"] == 0


def test_no_message_at_all(api: Api) -> None:
    assert api.error("SendMessage") == -32602
    assert api.error("GetTask", {}) == -32602


@pytest.mark.parametrize(
    ("part", "answer"),
    [
        ({"text": "hi", "unknownFieldXyz": 1}, "hi"),
        ({"type": "text", "text": "hi"}, "hi"),
        ({"kind": "text", "text": "hi"}, "hi"),
        ({"data": ["a", 1]}, '["a", 1]'),
        ({"data": "words"}, '"words"'),
        ({"data": 7}, "7"),
        ({"data": False}, "false"),
        ({"data": None}, "null"),
        ({"text": "emoji \U0001f600"}, "emoji \U0001f600"),
        ({"text": "nul \x00 end"}, "nul \ufffd end"),
    ],
)
def test_parts_that_are_in_order(api: Api, part: dict[str, Any], answer: str) -> None:
    """Members that nobody knows are ignored, data may be any JSON value."""
    task = api.send(parts=[part])
    assert (state_of(task), text_of(task)) == ("COMPLETED", answer)


def test_an_empty_text_is_a_text(api: Api) -> None:
    """Presence decides."""
    task = api.send(parts=[{"text": ""}])
    assert state_of(task) == "COMPLETED"
    assert task["history"][0]["parts"] == [{"text": ""}]


def test_protojson_is_read_in_all_its_forms(api: Api) -> None:
    """Integer enums, snake_case names, integers as strings; camelCase and names are written."""
    sent = message()
    body = {"role": 1, "message_id": sent["messageId"], "parts": [{"text": "hi", "media_type": "text/plain"}]}
    task = api.result("SendMessage", {"message": body, "configuration": {"historyLength": "1"}})["task"]
    assert task["history"][0]["role"] == "ROLE_USER"
    assert task["history"][0]["messageId"] == sent["messageId"]
    assert api.get(task["id"], historyLength="0").get("history") is None


@pytest.mark.parametrize(
    "part",
    [
        {"text": "x", "mediaType": "image/png"},
        {"data": {}, "mediaType": "application/pdf"},
    ],
)
def test_parts_of_a_type_that_is_not_taken(api: Api, part: dict[str, Any]) -> None:
    """§3.1.1: -32005, and the text names what is taken."""
    answer = api.rpc("SendMessage", {"message": message(parts=[part])})
    assert answer["error"]["code"] == -32005
    assert "text/plain" in answer["error"]["message"]
    rest = api.http.post("/a2a/v1/message:send", json={"message": message(parts=[part])})
    assert rest.status_code == 400
    assert rest.json()["error"]["details"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"


def test_the_same_message_again_is_the_same_task(api: Api) -> None:
    """Decided: equal content within ten minutes, from the same caller; other content is a new message."""
    body = {"message": message("hi")}
    first = api.result("SendMessage", body)["task"]
    again = api.result("SendMessage", body)["task"]
    assert again == first
    other = api.result("SendMessage", {"message": {**body["message"], "parts": [{"text": "ho"}]}})["task"]
    assert other["id"] != first["id"]
    assert api.result("ListTasks")["totalSize"] == 2


def test_the_same_answer_again_is_not_a_second_answer(api: Api) -> None:
    task = api.send("ask: one?\nask: two?")
    answer = message("1", taskId=task["id"])
    after = api.result("SendMessage", {"message": answer})["task"]
    assert (state_of(after), question_of(after)) == ("INPUT_REQUIRED", "two?")
    again = api.result("SendMessage", {"message": answer})["task"]
    assert question_of(again) == "two?"


def test_hops(api: Api) -> None:
    """The request's metadata, then the message's, else 0; over MAX_HOPS the task exists and has failed."""
    assert state_of(api.send(metadata={"volcanic.hops": 3})) == "COMPLETED"
    task = api.send(metadata={"volcanic.hops": 4})
    assert state_of(task) == "FAILED"
    assert "hops" in question_of(task)
    assert task["status"]["message"]["contextId"] == task["contextId"]
    params = {"message": message(metadata={"volcanic.hops": 9}), "metadata": {"volcanic.hops": 1}}
    assert state_of(api.result("SendMessage", params)["task"]) == "COMPLETED"
    params = {"message": message(), "metadata": {"volcanic.hops": 4, "note": "kept"}}
    task = api.result("SendMessage", params)["task"]
    assert state_of(task) == "FAILED"
    assert task["metadata"] == {"volcanic.hops": 4, "note": "kept"}


def test_accepted_output_modes_are_told_to_the_assistant(api: Api) -> None:
    """§3.2.2: the agent tailors its output; what the caller takes is in the turn's frame."""
    params = {"message": message(), "configuration": {"acceptedOutputModes": ["application/json", "text/plain"]}}
    task = api.result("SendMessage", params)["task"]
    assert state_of(task) == "COMPLETED"
    (turn,) = Turn.objects.filter(origin=f"task:{task['id']}")
    assert "- application/json\\n- text/plain\\n</media-types" in str(turn.messages)


def test_extensions_that_nobody_knows_are_ignored(api: Api) -> None:
    """§4.6: asked for in the header and named in the message; none is required, none is activated."""
    uri = "https://example.com/extensions/unknown/v1"
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message(extensions=[uri])}}
    answer = api.http.post("/a2a", json=body, headers={"A2A-Extensions": uri})
    task = answer.json()["result"]["task"]
    assert state_of(task) == "COMPLETED"
    assert task["history"][0]["extensions"] == [uri]
    assert uri not in answer.headers.get("a2a-extensions", "")


def test_metadata_is_kept(api: Api) -> None:
    """§3.2.5: any JSON under any key, of the request and of the message."""
    wild = {"a": [1, None, {"b": False}], "": "empty key", "c\x00": "x"}
    task = api.result("SendMessage", {"message": message(metadata=wild), "metadata": wild})["task"]
    kept = {"a": [1, None, {"b": False}], "": "empty key", "c\ufffd": "x"}
    assert api.get(task["id"])["metadata"] == kept
    assert api.get(task["id"])["history"][0]["metadata"] == kept

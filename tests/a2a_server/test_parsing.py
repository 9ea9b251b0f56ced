"""Malformed requests: the right error for each, in the shape of its binding."""

import json
import socket
from typing import Any

import httpx
import pytest

from a2a_server.http.parsing import FaultError, open_jsonrpc, parse_version, version_of_rest
from tests.product import Api, message

SEND = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message()}}


def _code(body: bytes, version: str = "") -> int:
    with pytest.raises(FaultError) as caught:
        open_jsonrpc(body, version)
    return caught.value.fault.code


@pytest.mark.parametrize(
    "body", [b"", b"{", b"not json", b'{"a": NaN}', b"\xff\xfe", b'{"n": 1e999}', b"[" * 100_000, b"9" * 10_000]
)
def test_what_is_no_json_is_a_parse_error(body: bytes) -> None:
    """-32700, never an internal error."""
    assert _code(body) == -32700


@pytest.mark.parametrize(
    "change",
    [
        {"jsonrpc": None},
        {"jsonrpc": "1.0"},
        {"jsonrpc": 2.0},
        {"id": {}},
        {"id": [1]},
        {"id": True},
        {"method": None},
        {"method": 7},
    ],
)
def test_a_malformed_envelope_is_an_invalid_request(change: dict[str, Any]) -> None:
    """-32600."""
    body = {name: value for name, value in (SEND | change).items() if value is not None}
    assert _code(json.dumps(body).encode()) == -32600


@pytest.mark.parametrize("body", [[], [SEND], "text", 7, None])
def test_what_is_no_object_is_an_invalid_request(body: Any) -> None:
    """Batches and scalars too."""
    assert _code(json.dumps(body).encode()) == -32600


@pytest.mark.parametrize("params", ["text", [], [1], 7, True])
@pytest.mark.parametrize("method", ["SendMessage", "message/send"])
def test_params_that_are_no_object_are_invalid_params(params: Any, method: str) -> None:
    """-32602, in both versions."""
    assert _code(json.dumps(SEND | {"method": method, "params": params}).encode()) == -32602


@pytest.mark.parametrize(
    ("method", "header", "expected"),
    [
        ("SendMessage", "", "1.0"),
        ("SendMessage", "1.0", "1.0"),
        ("SendMessage", " 1.0.3 ", "1.0"),
        ("message/send", "", "0.3"),
        ("message/send", "0.3", "0.3"),
        ("message/send", "0.3.0", "0.3"),
        ("SendMessage", "0.3", -32009),
        ("message/send", "1.0", -32601),
        ("SendMessage", "0.5", -32009),
        ("SendMessage", "2.0", -32009),
        ("SendMessage", "banana", -32009),
        ("tasks/list", "", -32601),
        ("NoSuchMethod", "1.0", -32601),
    ],
)
def test_the_version_is_the_headers_or_the_one_that_has_the_method(
    method: str, header: str, expected: str | int
) -> None:
    """No header is no hindrance where the method says it."""
    body = json.dumps(SEND | {"method": method}).encode()
    if isinstance(expected, int):
        assert _code(body, header) == expected
    else:
        assert open_jsonrpc(body, header).version == expected


@pytest.mark.parametrize(
    ("path", "body", "header", "version"),
    [
        ("/message:send", {"message": {"parts": []}}, "", "1.0"),
        ("/message:send", {"message": {"content": []}}, "", "0.3"),
        ("/message:send", {"request": {"content": []}}, "", "0.3"),
        ("/message:send", {"message": {"content": []}}, "1.0", "1.0"),
        ("/message:send", {"message": {"parts": []}}, "0.3", "0.3"),
        ("/message:send", {}, "", "1.0"),
        ("/message:send", [], "", "1.0"),
        ("/tasks/x", None, "", "1.0"),
        ("/card", None, "", "0.3"),
    ],
)
def test_the_version_of_a_rest_request_shows_in_its_body(path: str, body: Any, header: str, version: str) -> None:
    """The header decides; without one it is what only one of the versions has."""
    assert version_of_rest(path, body, header) == version


def test_patch_numbers_do_not_count() -> None:
    """§3.6."""
    assert [parse_version(header) for header in ("1.0", "1.0.7", "0.3", "0.3.1", "", " ")] == [
        "1.0",
        "1.0",
        "0.3",
        "0.3",
        "",
        "",
    ]


def test_unstorable_characters_are_replaced_in_values_and_keys() -> None:
    """U+0000 and lone surrogates become U+FFFD; pairs are left alone."""
    body = rb'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"a\u0000":["\ud800x","\ud83d\ude00","\u0000"]}}'
    assert open_jsonrpc(body, "").params == {"a\ufffd": ["\ufffdx", "\U0001f600", "\ufffd"]}


def test_errors_over_http_have_the_shape_of_their_binding(api: Api) -> None:
    """JSON-RPC answers with an envelope, REST with google.rpc.Status."""
    answer = api.http.post("/a2a", content=b"{", headers={"Content-Type": "application/json"})
    assert answer.json()["error"]["code"] == -32700
    assert answer.json()["id"] is None
    assert answer.headers["content-type"] == "application/json"
    answer = api.http.post("/a2a/v1/message:send", content=b"{", headers={"Content-Type": "application/a2a+json"})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/a2a+json"
    error = answer.json()["error"]
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert error["details"][0]["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    answer = api.http.get("/a2a/v1/tasks/nope", headers={"A2A-Version": "1.0"})
    assert answer.status_code == 404
    assert answer.json()["error"]["details"][0]["reason"] == "TASK_NOT_FOUND"
    answer = api.http.get("/a2a/v1/tasks", headers={"A2A-Version": "0.5"})
    assert answer.status_code == 400
    assert answer.json()["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


@pytest.mark.parametrize(
    ("verb", "path", "status"),
    [
        ("GET", "/a2a", 405),
        ("DELETE", "/a2a/", 405),
        ("POST", "/a2a/v1/tasks", 405),
        ("GET", "/a2a/v1/message:send", 405),
        ("POST", "/a2a/v1/tasks/x", 405),
        ("GET", "/a2a/nowhere", 404),
        ("POST", "/a2a/v1/nowhere", 404),
        ("GET", "/a2a/v1/tenant/tasks", 404),
        ("GET", "/a2a/push/x", 404),
    ],
)
def test_unknown_paths_and_wrong_verbs_are_json(api: Api, verb: str, path: str, status: int) -> None:
    """404 and 405, with or without a key, never HTML."""
    for headers in ({}, {"X-API-Key": ""}):
        answer = api.http.request(verb, path, headers=headers)
        assert answer.status_code == status
        assert "json" in answer.headers["content-type"]
        assert "error" in answer.json()


@pytest.mark.parametrize("path", ["/a2a", "/a2a/v1/message:send"])
def test_a_body_over_the_limit_is_refused(api: Api, path: str) -> None:
    """413 in the binding's shape: by its declared length, and while it is read when none is declared."""
    size = 33 * 1024 * 1024
    headers = {"Content-Type": "application/json"}
    with socket.create_connection((api.http.base_url.host, api.http.base_url.port or 80)) as raw:
        key = api.http.headers["X-API-Key"]
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Length: {size}\r\n\r\n"
        raw.sendall(head.encode())
        assert raw.recv(4096).startswith(b"HTTP/1.1 413 ")

    def chunks() -> Any:
        for _ in range(33):
            yield b" " * 1024 * 1024

    try:
        streamed = api.http.post(path, content=chunks(), headers=headers)
    except httpx.NetworkError:
        return  # refused and closed before all of it was sent: the reset can overtake the answer
    assert streamed.status_code == 413
    assert "error" in streamed.json()


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "application/a2a+json", None])
def test_both_media_types_are_taken_on_both_bindings(api: Api, content_type: str | None) -> None:
    """Decided: `application/json` and `application/a2a+json`, charset too."""
    headers = {"Content-Type": content_type} if content_type else {}
    answer = api.http.post("/a2a/", content=json.dumps(SEND).encode(), headers=headers)
    assert answer.json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    body = json.dumps({"message": message()}).encode()
    answer = api.http.post("/a2a/v1/message:send", content=body, headers=headers)
    assert answer.json()["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert answer.headers["content-type"] == "application/a2a+json"


def test_other_media_types_are_refused(api: Api) -> None:
    answer = api.http.post("/a2a", content=b"a=b", headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.status_code == 415

"""Files, both ways."""

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from a2a_server.models import Artifact, InboundFile, Task
from tests.conftest import Keyed
from tests.product import Api, Product, message, question_of, state_of
from tests.receiver import Receiver
from tests.waiting import wait_for
from volcanic.models import Turn

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 100


def _raw(content: bytes, filename: str = "", media_type: str = "") -> dict[str, Any]:
    part: dict[str, Any] = {"raw": base64.b64encode(content).decode()}
    return part | ({"filename": filename} if filename else {}) | ({"mediaType": media_type} if media_type else {})


def _inbox(product: Product, friend: Keyed, task: dict[str, Any]) -> Path:
    return product.folder / "workspaces" / friend.caller.workspace.slug / "inbox" / "friend" / str(task["id"])


def _stored(product: Product, friend: Keyed, task: dict[str, Any]) -> dict[str, bytes]:
    folder = _inbox(product, friend, task)
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


@pytest.fixture(autouse=True)
def folder(product: Product, friend: Keyed) -> None:
    """The workspace's folder, where the product looks for it."""
    (product.folder / "workspaces" / friend.caller.workspace.slug).mkdir(parents=True, exist_ok=True)


def test_files_land_in_the_inbox_and_the_assistant_is_told(api: Api, product: Product, friend: Keyed) -> None:
    """Names are kept apart; a zero-byte file exists; the true type is told."""
    parts = [
        {"text": "look"},
        _raw(b"one", "a.txt", "text/plain"),
        _raw(b"two", "A.txt"),
        _raw(b"", "empty.txt", "text/plain"),
        _raw(PNG, "pic.txt", "text/plain"),
        {"url": "data:text/csv;base64," + base64.b64encode(b"x,y").decode(), "filename": "t.csv"},
        {"url": "data:,plain%20words"},
    ]
    task = api.send(parts=parts)
    assert state_of(task) == "COMPLETED"
    assert _stored(product, friend, task) == {
        "a.txt": b"one",
        "A-2.txt": b"two",
        "empty.txt": b"",
        "pic.txt": PNG,
        "t.csv": b"x,y",
        "file": b"plain words",
    }
    (turn,) = Turn.objects.filter(origin=f"task:{task['id']}")
    told = str(turn.messages)
    for line in (
        f"inbox/friend/{task['id']}/a.txt (3 bytes, text/plain)",
        f"inbox/friend/{task['id']}/empty.txt (0 bytes, ",
        f"inbox/friend/{task['id']}/pic.txt (108 bytes, image/png)",
    ):
        assert line in told
    assert not InboundFile.objects.exclude(content=None).exists()  # the bytes are kept once


def test_the_history_names_files_and_does_not_repeat_them(api: Api) -> None:
    content = os.urandom(1000)
    task = api.send(parts=[_raw(content, "a.bin", "application/octet-stream")])
    (part,) = task["history"][0]["parts"]
    digest = hashlib.sha256(content).hexdigest()
    assert part == {"url": f"urn:sha256:{digest}", "filename": "a.bin", "mediaType": "application/octet-stream"}


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("../../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/abs/olute.txt", "olute.txt"),
        (".bashrc", "bashrc"),
        ("..", "file"),
        ("a\x00b.txt", "a_b.txt"),
        ("line\nbreak.txt", "line_break.txt"),
        ("\u202egnp.exe", "_gnp.exe"),
        ("\u00fcml\u00e4ut.txt", "\u00fcml\u00e4ut.txt"),
    ],
)
def test_names_are_made_safe(api: Api, product: Product, friend: Keyed, sent: str, stored: str) -> None:
    task = api.send(parts=[_raw(b"x", sent)])
    assert list(_stored(product, friend, task)) == [stored]


def test_a_long_name_keeps_its_extension(api: Api, product: Product, friend: Keyed) -> None:
    task = api.send(parts=[_raw(b"x", "n" * 250 + ".txt")])
    (name,) = _stored(product, friend, task)
    assert len(name) <= 100
    assert name.endswith(".txt")


@pytest.mark.parametrize(
    "part",
    [
        {"raw": "not base64!"},
        {"url": "data:text/plain;base64,not-base64"},
        {"url": "data:no-comma"},
        {"url": "ftp://example.com/a"},
        {"url": "file:///etc/passwd"},
        {"url": ""},
    ],
)
def test_what_can_be_refused_at_once_makes_no_task(api: Api, part: dict[str, Any]) -> None:
    assert api.error("SendMessage", {"message": message(parts=[part])}) == -32602
    assert not Task.objects.exists()


def test_a_file_over_the_limit_is_refused_by_name(api: Api) -> None:
    answer = api.rpc("SendMessage", {"message": message(parts=[_raw(b"x" * (10 * 1024 * 1024 + 1), "big.bin")])})
    assert answer["error"]["code"] == -32602
    assert "'big.bin'" in answer["error"]["message"]
    assert "10485760" in answer["error"]["message"]
    assert not Task.objects.exists()


def test_a_file_of_the_full_size_there_and_back(api: Api, product: Product, friend: Keyed) -> None:
    """What GetTask, a stream and a push show is the same."""
    content = os.urandom(9 * 1024 * 1024)
    task = api.send("ask: ready?", parts=[_raw(content, "big.bin"), {"text": "ask: ready?"}])
    path = f"inbox/friend/{task['id']}/big.bin"
    with Receiver() as receiver:
        params = {
            "message": message(f'tool: send {{"path": "{path}"}}', contextId=task["contextId"]),
            "configuration": {"taskPushNotificationConfig": {"url": receiver.url}},
        }
        with api.stream("SendStreamingMessage", params) as events:
            seen = list(events)
        wait_for(lambda: receiver.states()[-1:] == ["COMPLETED"])
        pushed = receiver.accepted[-1].json["task"]
    streamed = [event["artifactUpdate"]["artifact"] for event in seen if "artifactUpdate" in event]
    read = api.get(seen[0]["task"]["id"])
    files = [
        [artifact for artifact in artifacts if artifact["artifactId"] != "response"]
        for artifacts in (streamed, read["artifacts"], pushed["artifacts"])
    ]
    assert files[0] == files[1] == files[2]
    (artifact,) = files[0]
    (part,) = artifact["parts"]
    assert base64.b64decode(part["raw"]) == content
    assert part["filename"] == "big.bin"


def test_a_file_is_fetched_from_its_address(api: Api, product: Product, friend: Keyed, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/deep/report.pdf").respond_with_data(b"%PDF-1.7 x", content_type="text/html")
    url = httpserver.url_for("/deep/report.pdf").replace("localhost", "127.0.0.1")
    task = api.send(parts=[{"url": url}])
    assert state_of(task) == "COMPLETED"
    assert _stored(product, friend, task) == {"report.pdf": b"%PDF-1.7 x"}
    assert InboundFile.objects.get(task_id=task["id"]).media_type == "application/pdf"


@pytest.mark.parametrize("path", ["/missing", "/redirect", "/huge"])
def test_a_file_that_can_not_be_had_fails_the_task(
    api: Api, product: Product, friend: Keyed, httpserver: HTTPServer, path: str
) -> None:
    """The message says which file and why, and nothing half-written stays, of the good file neither."""
    httpserver.expect_request("/missing").respond_with_data("no", status=404)
    httpserver.expect_request("/redirect").respond_with_data("", status=302, headers={"Location": "/missing"})
    httpserver.expect_request("/huge").respond_with_data(b"x" * (10 * 1024 * 1024 + 1))
    url = httpserver.url_for(path).replace("localhost", "127.0.0.1")
    task = api.send(parts=[_raw(b"good", "good.txt"), {"url": url, "filename": "bad.bin"}])
    assert state_of(task) == "FAILED"
    assert "'bad.bin'" in question_of(task)
    assert _stored(product, friend, task) == {}


def test_an_address_inside_is_refused(api: Api) -> None:
    """Nothing is asked of an address that is not public."""
    task = api.send(parts=[{"url": "https://10.0.0.1/secret", "filename": "s"}])
    assert state_of(task) == "FAILED"
    assert "'s' could not be fetched" in question_of(task)


def test_an_answer_can_bring_files(api: Api, product: Product, friend: Keyed) -> None:
    task = api.send("ask: the file?", parts=[_raw(b"first", "a.txt"), {"text": "ask: the file?"}])
    api.send("here", taskId=task["id"], parts=[{"text": "here"}, _raw(b"second", "a.txt")])
    assert _stored(product, friend, task) == {"a.txt": b"first", "a-2.txt": b"second"}


def test_a_link_in_the_way_leads_nowhere(api: Api, product: Product, friend: Keyed, tmp_path: Path) -> None:
    """The inbox is the caller's to change: what it put there must not aim what is written for it next."""
    outside = tmp_path / "outside"
    outside.mkdir()
    task = api.send("ask: more?")
    inbox = _inbox(product, friend, task)
    inbox.parent.mkdir(parents=True, exist_ok=True)
    inbox.symlink_to(outside)
    answered = api.send("x", taskId=task["id"], parts=[{"text": "x"}, _raw(b"evil", "authorized_keys")])
    assert state_of(answered) == "FAILED"
    assert list(outside.iterdir()) == []
    inbox.unlink()
    task = api.send("ask: more?")
    inbox = _inbox(product, friend, task)
    inbox.symlink_to("../..")
    answered = api.send("x", taskId=task["id"], parts=[{"text": "x"}, _raw(b"evil", "MEMORY.md")])
    assert state_of(answered) == "FAILED"
    assert not (inbox.parent.parent.parent / "MEMORY.md").exists()


def test_a_change_of_status_does_not_rewrite_large_artifacts(api: Api, friend: Keyed) -> None:
    """A 10 MB artifact: the row that a status change writes is as small as without it."""
    task = api.send("ask: well?", parts=[_raw(os.urandom(7 * 1024 * 1024), "big.bin"), {"text": "ask: well?"}])
    sent = api.send(
        f'tool: send {{"path": "inbox/friend/{task["id"]}/big.bin"}}\nask: go on?', contextId=task["contextId"]
    )
    assert state_of(sent) == "INPUT_REQUIRED"
    (artifact,) = Artifact.objects.filter(task_id=sent["id"])
    assert len(json.dumps(artifact.payload)) > 9_000_000
    stored = _database_size()
    api.result("CancelTask", {"id": sent["id"]})
    assert _database_size() - stored < 500_000


def _database_size() -> int:
    """Bytes that this test's own database holds, dead rows included. The log of the server has others' writes too."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])

"""Access: authentication by API keys, and the isolation of callers from each other."""

import socket
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from a2a_server.models import Task
from tests.conftest import Keyed
from tests.product import Api, Product, message, state_of
from tests.waiting import PATIENCE
from trust.models import CallerKey
from trust.services import caller_set_enabled, grant_revoke, key_revoke, key_rotate

SEND = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message()}}


def _status(api: Api, headers: dict[str, str]) -> int:
    answer = api.http.post("/a2a", json=SEND, headers={"X-API-Key": "", **headers})
    return answer.status_code


def test_no_key_no_call(api: Api, friend: Keyed) -> None:
    """401 with a challenge, on both bindings, and no task."""
    key = friend.key
    wrong: list[dict[str, str]] = [
        {},
        {"X-API-Key": "wrong"},
        {"Authorization": f"Basic {key}"},
        {"Authorization": key},
        {"Authorization": "Bearer"},
        {"X-Api-Token": key},
        {"Cookie": f"X-API-Key={key}"},
        {"X-API-Key": key[:-1]},
        {"X-API-Key": key + "\u00e9"},
    ]
    for headers in wrong:
        raw = {name.encode(): value.encode("latin-1") for name, value in {"X-API-Key": "", **headers}.items()}
        for path in ("/a2a", "/a2a/v1/message:send"):
            answer = api.http.post(path, json=SEND, headers=raw)
            assert answer.status_code == 401, headers
            assert "Bearer" in answer.headers["www-authenticate"]
            assert "error" in answer.json()
            assert key not in answer.text
    assert not Task.objects.exists()


def test_the_key_is_taken_from_either_header(api: Api, friend: Keyed) -> None:
    assert _status(api, {"X-API-Key": friend.key}) == 200
    assert _status(api, {"Authorization": f"bearer {friend.key}", "X-API-Key": friend.key}) == 200
    answer = api.http.build_request("POST", "/a2a", json=SEND, headers={"Authorization": f"Bearer {friend.key}"})
    del answer.headers["x-api-key"]
    assert api.http.send(answer).status_code == 200


def test_the_key_is_checked_before_the_body_is_read(product: Product, transactional_db: None) -> None:
    """The answer comes while the body is still on its way."""
    with socket.create_connection(("127.0.0.1", product.port), timeout=PATIENCE) as raw:
        raw.sendall(b"POST /a2a HTTP/1.1\r\nHost: x\r\nX-API-Key: wrong\r\nContent-Length: 1000\r\n\r\n{")
        assert raw.recv(4096).startswith(b"HTTP/1.1 401 ")


def test_a_session_cookie_is_no_key(api: Api, superuser: User) -> None:
    client = Client()
    client.force_login(superuser)
    assert _status(api, {"Cookie": f"sessionid={client.cookies['sessionid'].value}"}) == 401


def test_keys_end(api: Api, friend: Keyed) -> None:
    """Revoked, expired, rotated with and without grace, caller disabled: each from the next request on."""
    key = CallerKey.objects.get(caller=friend.caller)
    new = key_rotate(caller=friend.caller, grace=timedelta(hours=1))
    assert (_status(api, {"X-API-Key": friend.key}), _status(api, {"X-API-Key": new})) == (200, 200)
    CallerKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert _status(api, {"X-API-Key": friend.key}) == 401
    newest = key_rotate(caller=friend.caller)
    assert (_status(api, {"X-API-Key": new}), _status(api, {"X-API-Key": newest})) == (401, 200)
    caller_set_enabled(caller=friend.caller, enabled=False)
    assert _status(api, {"X-API-Key": newest}) == 401
    caller_set_enabled(caller=friend.caller, enabled=True)
    assert _status(api, {"X-API-Key": newest}) == 200
    assert key_revoke(key=CallerKey.objects.get(caller=friend.caller, revoked_at=None))
    assert _status(api, {"X-API-Key": newest}) == 401


def test_use_of_a_key_is_noted(api: Api, friend: Keyed) -> None:
    assert CallerKey.objects.get(caller=friend.caller).last_used_at is None
    api.send()
    first = CallerKey.objects.get(caller=friend.caller).last_used_at
    api.send()
    assert first is not None
    assert CallerKey.objects.get(caller=friend.caller).last_used_at == first  # at most once a minute


def test_a_revoked_grant_counts_from_the_next_turn_on(api: Api, friend: Keyed) -> None:
    assert state_of(api.send()) == "COMPLETED"
    assert grant_revoke(caller=friend.caller, slug="chat")
    assert state_of(api.send()) == "AUTH_REQUIRED"


def test_another_callers_task_is_no_task(api: Api, product: Product, second_friend: Keyed, stranger: Keyed) -> None:
    """All that can be asked about it answers exactly as for an unknown id, and nothing happens to it."""
    task = api.send("ask: a secret?")
    unknown = "00000000-0000-4000-8000-000000000000"
    for other in (second_friend, stranger):
        with product.api(other.key) as foreign:

            def ask(task_id: str, foreign: Api = foreign) -> list[Any]:
                calls: list[tuple[str, dict[str, Any]]] = [
                    ("GetTask", {"id": task_id}),
                    ("CancelTask", {"id": task_id}),
                    ("SubscribeToTask", {"id": task_id}),
                    ("SendMessage", {"message": message("x", messageId="m", taskId=task_id)}),
                    ("SendMessage", {"message": message("x", messageId="m", taskId=task_id, contextId="c")}),
                    ("tasks/get", {"id": task_id}),
                    ("tasks/cancel", {"id": task_id}),
                ]
                answers: list[Any] = [foreign.rpc(method, params) for method, params in calls]
                paths = ["", ":cancel", ":subscribe"]
                answers += [
                    foreign.http.request("POST" if path else "GET", f"/a2a/v1/tasks/{task_id}{path}").content
                    for path in paths
                ]
                return answers

            assert ask(task["id"]) == ask(unknown)
            assert foreign.result("ListTasks")["totalSize"] == 0
            assert foreign.result("ListTasks", {"contextId": task["contextId"]})["tasks"] == []
    assert api.get(task["id"]) == task


@pytest.mark.parametrize("text", ["key vk_aaaaaaaaaaaaaaaaaaaaaaaa", "x"])
def test_no_key_in_any_log(api: Api, product: Product, friend: Keyed, text: str) -> None:
    api.send(text)
    api.http.post("/a2a", json=SEND, headers={"X-API-Key": "vk_wrong_but_secret_0000"})
    for name in ("web", "worker"):
        assert friend.key not in product.log(name)
        assert "vk_wrong_but_secret" not in product.log(name)

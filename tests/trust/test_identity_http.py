"""Callers with signed tokens, end to end, and what is noted of those who have none."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pytest_httpserver import HTTPServer

from tests.conftest import Keyed
from tests.product import Api, Product, message, state_of
from tests.trust.tokens import EC, OTHER_RSA, RSA, entry, jwk, token
from tests.waiting import PATIENCE, wait_for
from trust.models import CHAT, Caller, Level, RefusedCall
from trust.services import caller_set_enabled, caller_update, grant_add
from volcanic.models import Workspace

VERIFIERS = "trust.identity.api_key.ApiKeyVerifier,trust.identity.jwt.JwtVerifier"
OTHER = "https://closed.example"
SEND = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message()}}


def _publish(server: HTTPServer, *keys: dict[str, Any]) -> None:
    server.clear_all_handlers()
    server.expect_request("/keys").respond_with_json({"keys": list(keys)})


def _api(product: Product, text: str) -> Api:
    return Api(httpx.Client(base_url=product.url, headers={"Authorization": f"Bearer {text}"}, timeout=PATIENCE))


def _refused(reason: str, count: int = 1) -> RefusedCall:
    """Returns the row of the audit, when the calls have been written down."""
    found = wait_for(lambda: RefusedCall.objects.filter(reason=reason, count=count).first())
    assert found is not None
    return found


@pytest.fixture
def trusting(transactional_db: None, workspace: Workspace, httpserver: HTTPServer, tmp_path: Path) -> Iterator[Product]:
    """A product that takes tokens of two issuers, and admits the agents of one."""
    _publish(httpserver, jwk(RSA, "one"))
    issuers = [
        entry(keys=None, jwks_url=httpserver.url_for("/keys").replace("localhost", "127.0.0.1"), refresh_seconds=1),
        entry(issuer=OTHER, keys=[jwk(EC, "e")]),
    ]
    product = Product(
        tmp_path, IDENTITY_VERIFIERS=VERIFIERS, JWT_ISSUERS=json.dumps(issuers), ADMIT_UNKNOWN="https://id.example"
    )
    try:
        product.start()
        yield product
    finally:
        product.stop()


def test_a_caller_with_a_token(trusting: Product, httpserver: HTTPServer, friend: Keyed) -> None:
    """Admitted at Observe; served once the owner trusts it; keys rotate; disabled, it is out. API keys go on."""
    good = token(kid="one", name="Travel Bot")
    with _api(trusting, good).http as http:
        api = Api(http)
        assert state_of(api.send()) == "AUTH_REQUIRED"
        caller = Caller.objects.get(name="travel-bot")
        assert caller.level == Level.OBSERVE
        grant_add(caller=caller, slug=CHAT)
        caller_update(caller=caller, level=Level.ACT, note="")
        task = api.send()
        assert state_of(task) == "COMPLETED"
        assert api.get(task["id"])["id"] == task["id"]
        assert http.get("/a2a/v1/extendedAgentCard").status_code == 200
        _publish(httpserver, jwk(OTHER_RSA, "two"))
        with _api(trusting, token(OTHER_RSA, kid="two", name="Renamed")).http as rotated:
            # The issuer's keys are asked for again once refresh_seconds have passed.
            wait_for(lambda: rotated.get(f"/a2a/v1/tasks/{task['id']}").status_code == 200)
        assert http.post("/a2a", json=SEND).status_code == 401
    with trusting.api(friend.key) as own:
        assert state_of(own.send()) == "COMPLETED"
    caller_set_enabled(caller=caller, enabled=False)
    with _api(trusting, token(OTHER_RSA, kid="two")).http as http:
        assert http.post("/a2a", json=SEND).status_code == 401
    assert Caller.objects.count() == 2
    assert _refused("caller-disabled").path == "/a2a"
    assert _refused("unknown-signing-key").source == "127.0.0.1"


def test_calls_that_are_refused(trusting: Product) -> None:
    """401 for each, counted by reason and path, without the token; agents of a closed issuer are not admitted."""
    closed = token(EC, "ES256", kid="e", iss=OTHER)
    for bad, reason in (
        (token(EC, "ES256", kid="e", iss=OTHER, aud="x"), "wrong-audience"),
        (token(kid="one", exp=1), "token-expired"),
        (closed, "unknown-agent"),
        (token(iss="https://nobody.example"), "unknown-credential"),
        ("opaque", "unknown-credential"),
    ):
        with _api(trusting, bad).http as http:
            for path in ("/a2a", "/a2a/v1/message:send"):
                answer = http.post(path, json=SEND)
                assert answer.status_code == 401
                assert "Bearer" in answer.headers["www-authenticate"]
                assert reason not in answer.text
            assert http.get("/a2a/v1/tasks/some-id").status_code == 401
    with httpx.Client(base_url=trusting.url, timeout=PATIENCE) as http:
        assert http.post("/a2a", json=SEND).status_code == 401
    assert _refused("no-credential").path == "/a2a"
    for reason, count in (("wrong-audience", 1), ("token-expired", 1), ("unknown-agent", 1), ("unknown-credential", 2)):
        _refused(reason, count)
        rows = RefusedCall.objects.filter(reason=reason)
        assert {row.path for row in rows} == {"/a2a", "/a2a/v1/message:send", "/a2a/v1/tasks/…"}
    assert not Caller.objects.exists()
    assert closed not in trusting.log("web")
    assert closed not in str(list(RefusedCall.objects.values()))

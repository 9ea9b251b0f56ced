"""The authenticator: its answers and its notes of callers, with verifiers made for each test."""

from typing import Any

import pytest
from pytest_django.fixtures import Settings
from starlette.datastructures import Headers

from a2a_server.http import responses
from a2a_server.http.authentication import Authenticator, envelope_of
from a2a_server.http.parsing import FaultError
from a2a_server.http.responses import Fault
from trust.identity import Envelope, IdentityRefused, VerifiedIdentity
from trust.identity.resolve import Resolver
from trust.selectors import AuthenticatedCaller


class Says:
    """A verifier that says the same to everybody."""

    def __init__(self, answer: IdentityRefused | VerifiedIdentity) -> None:
        self.answer = answer

    async def verify(self, envelope: Envelope) -> VerifiedIdentity | None:
        """Answers."""
        if isinstance(self.answer, IdentityRefused):
            raise self.answer
        return self.answer


class Notes:
    """Stands in for the audit."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, str, str]] = []

    def note(self, source: str, reason: str, path: str) -> None:
        """Notes a refusal."""
        self.noted.append((source, reason, path))


def authenticator_of(answer: IdentityRefused | VerifiedIdentity) -> tuple[Authenticator, Notes]:
    authenticator, notes = Authenticator(), Notes()
    authenticator._resolver, authenticator._refusals = Resolver([Says(answer)]), notes  # type: ignore[assignment]
    return authenticator, notes


def scope_of(client: str = "192.0.2.1", **headers: str) -> dict[str, Any]:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": "POST", "path": "/a2a", "client": (client, 5), "headers": raw}


async def fault(authenticator: Authenticator, scope: dict[str, Any]) -> Fault:
    with pytest.raises(FaultError) as caught:
        await authenticator.authenticate(scope, Headers(scope=scope))
    return caught.value.fault


async def test_wrong_credentials_of_any_kind_are_limited(settings: Settings) -> None:
    """By their address; somebody without any credential is told so all the same."""
    settings.BAD_KEYS_PER_MINUTE = 2
    authenticator, notes = authenticator_of(IdentityRefused("token-expired"))
    answers = [await fault(authenticator, scope_of(authorization=f"Bearer eyJ{number}.b.c")) for number in range(3)]
    assert [answer.status for answer in answers] == [401, 401, 429]
    assert [reason for _, reason, _ in notes.noted] == ["token-expired", "token-expired", "too-many-wrong-keys"]
    assert await fault(authenticator, scope_of()) is responses.UNAUTHENTICATED
    assert (await fault(authenticator, scope_of("192.0.2.2", x_api_key="x"))).status == 401


async def test_what_could_not_be_found_out_is_no_wrong_key(settings: Settings) -> None:
    settings.BAD_KEYS_PER_MINUTE = 1
    authenticator, notes = authenticator_of(IdentityRefused("keys-unavailable", temporary=True))
    for _ in range(3):
        assert await fault(authenticator, scope_of(x_api_key="x")) is responses.UNAVAILABLE
    assert notes.noted == [("192.0.2.1", "keys-unavailable", "/a2a")] * 3


async def test_a_caller_without_a_key_has_no_use_to_note() -> None:
    """There is no database in this test."""
    caller = AuthenticatedCaller(7, "bot", 1, None, True)
    authenticator, notes = authenticator_of(VerifiedIdentity("a", "a", "x", caller=caller))
    scope = scope_of()
    assert await authenticator.authenticate(scope, Headers(scope=scope)) is caller
    assert notes.noted == []


@pytest.mark.parametrize(("client", "source"), [("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("::1", "::/64")])
async def test_networks_are_noted_as_such(client: str, source: str) -> None:
    authenticator, notes = authenticator_of(IdentityRefused("no-good"))
    await fault(authenticator, scope_of(client))
    assert notes.noted[0][0] == source


@pytest.mark.parametrize(("proxies", "peer", "scheme"), [(0, "10.0.0.1", ""), (1, "198.51.100.7", "https")])
def test_a_proxys_word_counts_where_there_is_one(settings: Settings, proxies: int, peer: str, scheme: str) -> None:
    settings.AXES_IPWARE_PROXY_COUNT = proxies
    scope = scope_of("10.0.0.1", x_forwarded_for="6.6.6.6, 198.51.100.7", x_forwarded_proto="https")
    envelope = envelope_of(scope, Headers(scope=scope))
    assert (envelope.peer, envelope.tls.scheme) == (peer, scheme)
    assert (envelope.method, envelope.path) == ("POST", "/a2a")

"""Keys of token issuers that are fetched by HTTP: the cache, key changes, troubles of the address."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from pytest_django.fixtures import Settings

from tests.trust.tokens import (
    ED,
    ISSUER,
    NOW,
    OTHER_RSA,
    RSA,
    SECRET,
    WEAK,
    bearer,
    entry,
    jwk,
    token,
)
from tests.volcanic.peers import Server, answer, serving
from trust.identity import IdentityRefused, jwks
from trust.identity.jwt import JwtVerifier


class Provider:
    """A JWKS address whose answer can be changed."""

    def __init__(self) -> None:
        self.keys: list[Any] = [jwk(RSA, "one")]
        self.status = "200 OK"
        self.body: bytes | None = None
        # Set when somebody asks; and cleared, nobody is answered.
        self.asked, self.answering = asyncio.Event(), asyncio.Event()
        self.answering.set()
        self.server = Server()

    async def handle(self, _request: bytes, writer: asyncio.StreamWriter) -> None:
        """Answers a request."""
        self.asked.set()
        await self.answering.wait()
        body = json.dumps({"keys": self.keys}).encode() if self.body is None else self.body
        writer.write(answer(body, status=self.status))

    @property
    def fetched(self) -> int:
        """How often it was asked."""
        return len(self.server.requests)

    def verifier(self, **members: Any) -> JwtVerifier:
        """Returns a verifier whose issuer's keys are here."""
        url = f"http://127.0.0.1:{self.server.port}/keys"
        return JwtVerifier([entry(keys=None, jwks_url=url, **members)])


@pytest.fixture
async def provider(settings: Settings) -> AsyncIterator[Provider]:
    """A JWKS address on this machine, which the operator opened."""
    provider = Provider()
    async with serving(provider.handle) as provider.server:
        settings.ALLOWED_PRIVATE_HOSTS = [f"127.0.0.1:{provider.server.port}"]
        yield provider


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds by which the cache's clock is ahead."""
    ahead = [0.0]
    real = time.monotonic
    monkeypatch.setattr("trust.identity.jwks.time.monotonic", lambda: real() + ahead[0])
    return ahead


async def refused(verifier: JwtVerifier, text: str) -> IdentityRefused:
    with pytest.raises(IdentityRefused) as caught:
        await verifier.verify(bearer(text))
    return caught.value


async def test_keys_are_fetched_once(provider: Provider) -> None:
    """Fifty first calls at a time make one request, and later ones none."""
    provider.answering.clear()
    verifier, good = provider.verifier(), bearer(token(kid="one"))
    calls = [asyncio.create_task(verifier.verify(good)) for _ in range(50)]
    await provider.asked.wait()
    assert not any(call.done() for call in calls)
    provider.answering.set()
    assert all(await asyncio.gather(*calls))
    assert await verifier.verify(good)
    assert provider.fetched == 1


async def test_a_caller_that_goes_away_leaves_the_others_their_keys(provider: Provider) -> None:
    provider.answering.clear()
    verifier, good = provider.verifier(), bearer(token(kid="one"))
    first = asyncio.create_task(verifier.verify(good))
    await provider.asked.wait()
    second = asyncio.create_task(verifier.verify(good))
    await asyncio.sleep(0)  # it waits for the same answer now
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not second.done()
    provider.answering.set()
    assert await second
    assert provider.fetched == 1


async def test_who_is_vouched_for_by_the_keys_at_hand(provider: Provider, clock: list[float]) -> None:
    """Nothing is fetched for it, with any key id in the token."""
    verifier = provider.verifier()
    assert verifier.vouched(bearer(token(kid="one"))) is None
    assert provider.fetched == 0
    await verifier.verify(bearer(token(kid="one")))
    clock[0] += 3600
    found = verifier.vouched(bearer(token(kid="one", jti="another")))
    assert found is not None
    assert (found.agent_id, found.issuer) == ("agent-1", ISSUER)
    for no in (token(kid="two"), token(OTHER_RSA, kid="one"), token(kid="one", exp=NOW - 3600), "vk_key", "eyJ.a.b"):
        assert verifier.vouched(bearer(no)) is None
    assert verifier.vouched(bearer(token(kid="one", iss="https://other.example"))) is None
    clock[0] += 86400
    assert verifier.vouched(bearer(token(kid="one"))) is None
    assert provider.fetched == 1


async def test_keys_change(provider: Provider, clock: list[float]) -> None:
    """A new kid is looked for at once; an old key counts until the keys are fetched anew, and then no more."""
    verifier = provider.verifier()
    assert await verifier.verify(bearer(token(kid="one")))
    provider.keys = [jwk(OTHER_RSA, "two")]
    assert await verifier.verify(bearer(token(kid="one")))
    clock[0] += 31
    assert await verifier.verify(bearer(token(OTHER_RSA, kid="two")))
    assert (await refused(verifier, token(kid="one"))).reason == "unknown-signing-key"
    provider.keys = [jwk(RSA, "three")]
    clock[0] += 601
    assert (await refused(verifier, token(OTHER_RSA, kid="two"))).reason == "unknown-signing-key"
    assert provider.fetched == 3


async def test_made_up_kids_fetch_nothing(provider: Provider, clock: list[float]) -> None:
    """However many there are: at most once in refresh_seconds."""
    verifier = provider.verifier(refresh_seconds=30)
    for number in range(100):
        assert (await refused(verifier, token(kid=f"made-up-{number}"))).reason == "unknown-signing-key"
    assert provider.fetched == 1
    clock[0] += 31
    for number in range(100):
        await refused(verifier, token(kid=f"made-up-{number}"))
    assert provider.fetched == 2
    assert await verifier.verify(bearer(token(kid="one")))


@pytest.mark.parametrize("trouble", ["status", "garbage", "deep", "list", "huge"])
async def test_the_address_in_trouble(provider: Provider, clock: list[float], trouble: str) -> None:
    """The last keys count for a day, and come back when the address does."""
    verifier, good = provider.verifier(), bearer(token(kid="one"))
    assert await verifier.verify(good)
    if trouble == "status":
        provider.status = "500 Oops"
    bodies = {"garbage": b"<html>", "deep": b"[" * 100000, "list": b"[]", "huge": b" " * 300_000}
    provider.body = bodies.get(trouble)
    clock[0] += 3600
    assert await verifier.verify(good)
    assert await verifier.verify(good)
    assert provider.fetched == 2
    clock[0] += 86400
    refusal = await refused(verifier, token(kid="one"))
    assert (refusal.reason, refusal.temporary) == ("keys-unavailable", True)
    provider.status, provider.body = "200 OK", None
    clock[0] += 31
    assert await verifier.verify(good)


async def test_an_address_that_was_not_opened(provider: Provider, settings: Settings) -> None:
    verifier = provider.verifier()
    settings.ALLOWED_PRIVATE_HOSTS = []
    assert (await refused(verifier, token(kid="one"))).temporary
    assert provider.fetched == 0


async def test_a_set_with_other_keys_in_it(provider: Provider) -> None:
    """What we can't use is passed over; a symmetric key never counts."""
    oct_key = {"kty": "oct", "kid": "oct", "k": base64.urlsafe_b64encode(SECRET.encode()).decode()}
    others = [oct_key, jwk(OTHER_RSA, "enc", use="enc"), {"kty": "new"}, 7, {"kty": "RSA"}, jwk(WEAK, "weak")]
    provider.keys = [*others, {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}, *provider.keys, jwk(ED, "ed")]
    verifier = provider.verifier()
    assert await verifier.verify(bearer(token(kid="one")))
    assert await verifier.verify(bearer(token(ED, "EdDSA", kid="ed")))
    assert (await refused(verifier, token(OTHER_RSA, kid="enc"))).reason == "unknown-signing-key"
    assert (await refused(verifier, token(SECRET, "HS256", kid="oct"))).reason == "algorithm-not-allowed"


async def test_a_set_with_a_key_that_the_library_does_not_support(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is passed over like any other that we can't use."""

    def read(_jwk: Any) -> Any:
        raise UnsupportedAlgorithm("not in this build")

    monkeypatch.setitem(jwks._READERS, "OKP", read)
    provider.keys = [jwk(ED, "ed"), *provider.keys]
    verifier = provider.verifier()
    assert await verifier.verify(bearer(token(kid="one")))
    assert (await refused(verifier, token(ED, "EdDSA", kid="ed"))).reason == "unknown-signing-key"

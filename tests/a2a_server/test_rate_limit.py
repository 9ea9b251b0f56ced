"""Requests a minute: of callers, and of addresses with wrong keys."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings as django_settings
from django.utils import timezone
from pytest_django.fixtures import Settings
from starlette.datastructures import Headers

from a2a_server.http import limiting
from a2a_server.http.authentication import Authenticator
from a2a_server.http.limiting import Buckets, CallerLimiter, StrangerLimiter, address_of
from a2a_server.http.parsing import FaultError
from a2a_server.models import Task
from tests.a2a_server.test_authentication import Notes, scope_of
from tests.conftest import Keyed
from tests.product import Api, Product, message
from tests.trust.tokens import OTHER_RSA, entry, forged, token
from tests.waiting import PATIENCE
from trust.identity import IdentityRefused, VerifiedIdentity
from trust.keys import key_digest
from trust.limits import COLUMNS, DEFAULTS, Limits
from trust.models import Caller
from trust.selectors import AuthenticatedCaller, caller_by_key_digest
from trust.services import caller_set_limits

SEND = {"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": {"message": message()}}
_ids = iter(range(10**6, 10**7))


@pytest.fixture
async def limiter() -> AsyncIterator[CallerLimiter]:
    """What a web process counts with."""
    limiter = CallerLimiter()
    yield limiter
    await limiter.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds by which the monotonic clock is ahead."""
    ahead = [0.0]
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + ahead[0])
    return ahead


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis is waited for, as long as a busy machine makes it take: what is tested is how it counts."""
    monkeypatch.setattr(limiting, "_TIMEOUT_SECONDS", PATIENCE)


@pytest.fixture
def asked(limiter: CallerLimiter, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A line for each time that Redis was asked, with its address."""
    asked: list[str] = []
    connected = limiter._connected

    def ask() -> Any:
        asked.append(django_settings.REDIS_URL)
        return connected()

    monkeypatch.setattr(limiter, "_connected", ask)
    return asked


@pytest.fixture
def limited(api: Api, friend: Keyed) -> Api:
    """The friend, who may make three requests a minute."""
    caller_set_limits(caller=friend.caller, requests_per_minute=3)
    return api


def test_over_the_limit_in_jsonrpc(limited: Api) -> None:
    """HTTP 429 with Retry-After, a JSON-RPC error, and no task."""
    for _ in range(3):
        assert limited.http.get("/a2a/v1/tasks").status_code == 200
    answer = limited.http.post("/a2a", json=SEND)
    assert answer.status_code == 429
    assert answer.headers["content-type"] == "application/json"
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    body = answer.json()
    assert body["error"]["code"] == -32000
    assert "3 requests a minute" in body["error"]["message"]
    info, retry = body["error"]["data"]
    assert info["reason"] == "RATE_LIMITED"
    assert retry == {
        "@type": "type.googleapis.com/google.rpc.RetryInfo",
        "retryDelay": f"{answer.headers['retry-after']}s",
    }
    assert not Task.objects.exists()


@pytest.mark.parametrize("path", ["/a2a/v1/message:send", "/a2a/v1/message:stream", "/a2a/v0.3/v1/message:send"])
def test_over_the_limit_in_rest(limited: Api, path: str) -> None:
    for _ in range(3):
        limited.http.get("/a2a/v1/tasks")
    answer = limited.http.post(path, json={"message": message()})
    assert answer.status_code == 429
    assert answer.headers["content-type"] == "application/a2a+json"
    assert int(answer.headers["retry-after"]) >= 1
    error = answer.json()["error"]
    assert (error["code"], error["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert [detail.get("reason") for detail in error["details"]] == ["RATE_LIMITED", None]
    assert not Task.objects.exists()


def test_callers_do_not_share_a_limit(limited: Api, product: Product, second_friend: Keyed, friend: Keyed) -> None:
    """And the owner's change counts from the next request on; 0 is no limit."""
    codes = [limited.http.get("/a2a/v1/tasks").status_code for _ in range(5)]
    assert codes == [200, 200, 200, 429, 429]
    with product.api(second_friend.key) as other:
        assert [other.http.get("/a2a/v1/tasks").status_code for _ in range(5)] == [200] * 5
    caller_set_limits(caller=friend.caller, requests_per_minute=0)
    assert limited.http.get("/a2a/v1/tasks").status_code == 200


def test_the_public_card_is_not_counted(limited: Api) -> None:
    for _ in range(6):
        assert limited.http.get("/.well-known/agent-card.json").status_code == 200


@pytest.mark.django_db
def test_limits_of_a_caller(friend: Keyed, settings: Settings) -> None:
    """Its own where there are any, else the settings'; read together with its key."""
    settings.MAX_RUNNING_TASKS = 17
    caller_set_limits(caller=friend.caller, requests_per_minute=5, max_inbox_bytes=0)
    found = caller_by_key_digest(key_digest(friend.key))
    assert found is not None
    assert found.limits == Limits(5, 17, settings.MAX_OPEN_CONTEXTS, 0, settings.MAX_STORED_TASKS)
    overrides = {column: number for number, column in enumerate(COLUMNS)}
    Caller.objects.filter(pk=friend.caller.pk).update(**overrides)
    found = caller_by_key_digest(key_digest(friend.key))
    assert found is not None
    assert {column: getattr(found.limits, column) for column in COLUMNS} == overrides
    assert all(hasattr(settings, setting) for setting in DEFAULTS.values())


@pytest.mark.usefixtures("_patient")
async def test_a_burst_then_places_come_back(limiter: CallerLimiter) -> None:
    """All of a minute's requests at once; then each place comes back a minute after it was taken."""
    caller, start = next(_ids), timezone.now()
    with time_machine.travel(start, tick=False):
        assert [await limiter.take(caller, 4) for _ in range(3)] == [0, 0, 0]
    with time_machine.travel(start + timedelta(seconds=20), tick=False):
        assert await limiter.take(caller, 4) == 0
        assert await limiter.take(caller, 4) in (40, 41)  # the clock's last digits are rounded in Redis
    with time_machine.travel(start + timedelta(seconds=61), tick=False):
        assert [await limiter.take(caller, 4) for _ in range(3)] == [0, 0, 0]
        assert await limiter.take(caller, 4) in (19, 20)


@pytest.mark.usefixtures("_patient")
async def test_two_processes_share_a_limit(limiter: CallerLimiter) -> None:
    """Simultaneous requests to several processes: exactly the allowed number is let in."""
    other, caller = CallerLimiter(), next(_ids)
    await asyncio.gather(limiter.take(next(_ids), 9), other.take(next(_ids), 9))  # connected
    answers: list[int] = []
    for _ in range(5):
        answers += await asyncio.gather(*(one.take(caller, 30) for one in (limiter, other) for _ in range(10)))
    await other.close()
    assert sum(wait == 0 for wait in answers) == 30
    assert set(answers) - {0} <= {59, 60}


async def test_no_limit_asks_nobody(limiter: CallerLimiter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiter, "_connected", None)
    assert await limiter.take(next(_ids), 0) == 0


async def test_redis_away(
    limiter: CallerLimiter, asked: list[str], settings: Settings, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody is refused for it; the process counts by itself, says so once a minute, and asks again after a while."""
    there, settings.REDIS_URL = settings.REDIS_URL, "unix:///nowhere/at-all.sock?db=0"
    caller = next(_ids)
    assert [await limiter.take(caller, 3) for _ in range(4)] == [0, 0, 0, 20]
    assert len(asked) == 1
    for _ in range(4):
        clock[0] += 6
        await limiter.take(next(_ids), 3)
    assert len(asked) == 5
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1
    settings.REDIS_URL = there
    await limiter.close()
    assert await limiter.take(caller, 1) > 0
    assert len(asked) == 5  # still left alone
    clock[0] += 6
    assert await limiter.take(caller, 1) == 0  # asked again, where nothing is known of it
    assert await limiter.take(caller, 1) >= 59


async def test_redis_that_hangs_is_not_waited_for(limiter: CallerLimiter, asked: list[str], settings: Settings) -> None:
    """It never answers, and everybody is served. It is asked once, then left alone for some seconds."""
    connections: list[Any] = []

    async def hang(reader: Any, writer: Any) -> None:
        connections.append(writer)
        await reader.read()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    settings.REDIS_URL = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
    assert await limiter.take(next(_ids), 3) == 0
    limiter._away_until += 3600  # however slow this machine is
    assert [await limiter.take(next(_ids), 3) for _ in range(100)] == [0] * 100
    assert asked == [settings.REDIS_URL]
    assert limiting._TIMEOUT_SECONDS == 0.05
    await limiter.close()
    for writer in connections:
        writer.close()
    server.close()


def test_a_bucket_fills_up_again(clock: list[float]) -> None:
    buckets = Buckets(most=2)
    assert [buckets.take("a", 60) for _ in range(60)] == [0.0] * 60
    assert 0.9 < buckets.take("a", 60) <= 1
    clock[0] += 1.5
    assert buckets.take("a", 60) == 0
    assert buckets.wait("a", 60) > 0
    for key in "bc":
        assert buckets.take(key, 60) == 0
    assert buckets.wait("a", 60) == 0  # forgotten: only so many are kept


def test_a_stranger_does_not_shut_its_neighbours_out(settings: Settings, clock: list[float]) -> None:
    """Good keys of the same address go on working; a good key that ended is a wrong one."""
    settings.BAD_KEYS_PER_MINUTE = 3
    strangers = StrangerLimiter()
    strangers.note_good("good")
    for number in range(3):
        assert strangers.wait("1.2.3.4", f"bad {number}") == 0
        strangers.note_bad("1.2.3.4", f"bad {number}")
    assert 1 <= strangers.wait("1.2.3.4", "bad") <= 20
    assert strangers.wait("1.2.3.4", "good") == 0
    assert strangers.wait("5.6.7.8", "bad") == 0
    strangers.note_bad("1.2.3.4", "good")
    assert strangers.wait("1.2.3.4", "good") > 0
    clock[0] += 61
    assert strangers.wait("1.2.3.4", "bad") == 0
    settings.BAD_KEYS_PER_MINUTE = 0
    for number in range(99):
        strangers.note_bad("1.2.3.4", f"bad {number}")
    assert strangers.wait("1.2.3.4", "bad") == 0


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The agents that the database was asked for: it knows all but those whose name begins with `unknown`."""
    looked_up: list[str] = []

    def caller_of(identity: VerifiedIdentity) -> AuthenticatedCaller:
        looked_up.append(identity.agent_id)
        if identity.agent_id.startswith("unknown"):
            raise IdentityRefused("unknown-agent")
        return AuthenticatedCaller(7, identity.agent_id, 1, None, False)

    async def run(function: Any, *args: Any) -> Any:
        return function(*args)

    monkeypatch.setattr("trust.identity.resolve.caller_of", caller_of)
    monkeypatch.setattr("trust.identity.resolve.run_db", run)
    return looked_up


@pytest.fixture
async def beset(settings: Settings, looked_up: list[str]) -> Authenticator:
    """A authenticator for tokens, at whose proxy somebody has tried as many wrong ones as may be."""
    settings.BAD_KEYS_PER_MINUTE = 3
    settings.IDENTITY_VERIFIERS = ["trust.identity.jwt.JwtVerifier"]
    settings.JWT_ISSUERS = [
        entry(),
        entry(issuer="https://other.example", keys=None, jwks_url="https://nowhere.example/"),
    ]
    authenticator = Authenticator()
    authenticator._refusals = Notes()  # type: ignore[assignment]
    assert [await _status(authenticator, forged({"alg": "RS256"}, jti=number)) for number in range(3)] == [401] * 3
    return authenticator


async def _status(authenticator: Authenticator, credential: str) -> int:
    """What somebody behind the proxy is answered; 200 for who is let in."""
    scope = scope_of(authorization=f"Bearer {credential}")
    try:
        await authenticator.authenticate(scope, Headers(scope=scope))
    except FaultError as refused:
        return refused.fault.status
    return 200


async def test_a_fresh_token_is_not_shut_out_with_its_neighbours(beset: Authenticator, looked_up: list[str]) -> None:
    """Every kind of wrong credential is shut out, without a look-up or a request."""
    assert await _status(beset, token(kid="rsa", jti="1")) == 200
    assert await _status(beset, token(kid="rsa", jti="2")) == 200
    assert looked_up == ["agent-1"] * 2
    for wrong in (
        "vk_a_key",
        forged({"alg": "RS256", "kid": "rsa"}),
        token(OTHER_RSA, kid="rsa"),
        token(kid="no-such-key"),
        token(kid="rsa", exp=1),
        token(kid="rsa", iss="https://other.example"),  # its keys would have to be fetched
    ):
        assert await _status(beset, wrong) == 429
    assert looked_up == ["agent-1"] * 2


async def test_whom_an_issuer_vouches_for_is_counted_alone(beset: Authenticator, looked_up: list[str]) -> None:
    """An unknown client has a limited number of tries with any tokens, and takes none from others."""
    tries = [await _status(beset, token(kid="rsa", sub="unknown-bot", jti=str(number))) for number in range(6)]
    assert tries == [401] * 3 + [429] * 3
    assert looked_up == ["unknown-bot"] * 3
    assert await _status(beset, token(kid="rsa", sub="unknown-other")) == 401
    assert await _status(beset, token(kid="rsa")) == 200


async def test_a_flood_asks_nothing(
    beset: Authenticator, looked_up: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beset._resolver, "resolve", None)
    for number in range(200):
        assert await _status(beset, forged({"alg": "RS256", "kid": "rsa"}, b"x", jti=number)) == 429
        assert await _status(beset, f"vk_{number}") == 429
    assert looked_up == []


@pytest.mark.parametrize(
    ("client", "forwarded", "proxies", "address"),
    [
        (("192.0.2.1", 5), [], 0, "192.0.2.1"),
        (("192.0.2.1", 5), ["198.51.100.7"], 0, "192.0.2.1"),
        (("192.0.2.1", 5), ["6.6.6.6, 198.51.100.7"], 1, "198.51.100.7"),
        (("192.0.2.1", 5), ["6.6.6.6", "198.51.100.7, 203.0.113.9"], 2, "198.51.100.7"),
        (("192.0.2.1", 5), [], 1, "192.0.2.1"),
        (("2001:db8:1:2:3:4:5:6", 5), [], 0, "2001:db8:1:2"),
        (("2001:db8:1:2::6", 5), [], 0, "2001:db8:1:2"),
        (("::1", 5), [], 0, ""),
        (None, [], 0, ""),
    ],
)
def test_addresses(settings: Settings, client: Any, forwarded: list[str], proxies: int, address: str) -> None:
    """What a visitor made up counts for nothing; of IPv6 a whole network is one address."""
    settings.AXES_IPWARE_PROXY_COUNT = proxies
    headers = Headers(raw=[(b"x-forwarded-for", value.encode()) for value in forwarded])
    assert address_of(client, headers) == address


@pytest.fixture
def alone(transactional_db: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A web process without Redis, with small limits."""
    folder = tmp_path_factory.mktemp("alone")
    limits = {"REQUESTS_PER_MINUTE": "4", "BAD_KEYS_PER_MINUTE": "3"}
    product = Product(folder, REDIS_URL=f"unix://{folder}/nothing.sock?db=0", **limits)
    try:
        product.start_web()
        yield product
    finally:
        product.stop()


def test_a_product_without_redis(alone: Product, friend: Keyed, stranger: Keyed) -> None:
    """It serves, counts by itself, and warns once; wrong keys are refused without a look, good ones are not."""
    with alone.api(friend.key) as api:
        assert [api.http.get("/a2a/v1/tasks").status_code for _ in range(5)] == [200] * 4 + [429]
        wrong = [api.http.get("/a2a/v1/tasks", headers={"X-API-Key": f"vk_{number}"}) for number in range(5)]
        assert [answer.status_code for answer in wrong] == [401] * 3 + [429] * 2
        assert wrong[-1].json()["error"]["status"] == "RESOURCE_EXHAUSTED"
        assert 1 <= int(wrong[-1].headers["retry-after"]) <= 20
        assert (
            "wrong keys" in api.http.post("/a2a", json=SEND, headers={"X-API-Key": "vk_9"}).json()["error"]["message"]
        )
        assert api.http.get("/a2a/v1/tasks").status_code == 429  # by its own limit: the key was looked up
        assert api.http.get("/a2a/v1/tasks", headers={"X-API-Key": ""}).status_code == 401
    assert alone.log("web").count("requests are counted in each process by itself") == 1

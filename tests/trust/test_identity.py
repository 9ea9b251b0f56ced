"""Identity: the verifiers in order, callers of known identities, admission and refusals."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from pytest_django.fixtures import DjangoAssertNumQueries, Settings

from tests.conftest import Keyed
from tests.trust.tokens import UNSUPPORTED, bearer, entry, token
from trust import refusals
from trust.identity import Envelope, IdentityRefused, VerifiedIdentity
from trust.identity.admission import caller_of, name_from
from trust.identity.api_key import ApiKeyVerifier
from trust.identity.name import NameVerifier
from trust.identity.resolve import Resolver
from trust.models import Caller, CallerIdentity, CallerKey, Level, RefusedCall
from trust.refusals import RefusalLog, collapsed_path, refused_calls_record
from trust.selectors import AuthenticatedCaller
from trust.services import caller_set_enabled, identity_add, identity_remove
from volcanic.aio.db import run_db
from volcanic.models import Workspace

ISSUER = "https://id.example"


def identity(agent_id: str = "agent-1", name: str = "Travel Bot", **members: Any) -> VerifiedIdentity:
    return VerifiedIdentity(agent_id, name, ISSUER, **members)


def why(function: Callable[[], object]) -> str:
    with pytest.raises(IdentityRefused) as caught:
        function()
    return caught.value.reason


def check_messages() -> list[checks.CheckMessage]:
    # Other checks look at the machine: whether it has a sandbox.
    return [message for message in checks.run_checks() if str(message.id).startswith("trust.")]


class Fixed:
    """A verifier that always says the same, and notes that it was asked."""

    def __init__(self, answer: VerifiedIdentity | Exception | None) -> None:
        self.answer, self.asked = answer, 0

    async def verify(self, envelope: Envelope) -> VerifiedIdentity | None:
        """Answers."""
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


# What verifiers see.


def test_an_envelopes_headers() -> None:
    envelope = Envelope.of([("X-A", " one "), ("x-a", "two"), ("X-B", "b"), ("Authorization", "bearer  tok.en ")])
    assert envelope.values("X-a") == ["one", "two"]
    assert (envelope.one("x-a"), envelope.one("x-b"), envelope.one("x-c")) == ("", "b", "")
    assert envelope.bearer == "tok.en"
    assert Envelope.of({"Authorization": "Basic x"}).bearer == ""


def test_tls_facts_need_a_trusted_proxy() -> None:
    headers = {"X-Forwarded-Proto": "HTTPS", "X-SSL-Client-Verify": "SUCCESS", "X-SSL-Client-S-DN": "CN=a"}
    assert Envelope.of(headers).tls == type(Envelope.of().tls)()
    facts = Envelope.of(headers, behind_proxy=True).tls
    assert (facts.scheme, facts.client_verified, facts.client_subject) == ("https", "SUCCESS", "CN=a")
    twice = Envelope.of([*headers.items(), ("X-SSL-Client-S-DN", "CN=b")], behind_proxy=True)
    assert twice.tls.client_subject == ""


def test_a_reason_is_a_code_and_nothing_else() -> None:
    assert IdentityRefused("wrong-key").reason == "wrong-key"
    assert IdentityRefused("the key vk_secret is wrong").reason == "refused"
    assert "vk_secret" not in str(IdentityRefused("the key vk_secret is wrong"))


# Keys.


@pytest.mark.django_db(transaction=True)
async def test_api_keys(friend: Keyed) -> None:
    verifier = ApiKeyVerifier()
    for headers in ({"X-API-Key": friend.key}, {"Authorization": f"Bearer {friend.key}"}):
        found = await verifier.verify(Envelope.of(headers))
        assert found is not None
        assert found.caller is not None
        assert (found.caller.id, found.caller.key_id) == (
            friend.caller.id,
            await run_db(lambda: CallerKey.objects.get().pk),
        )
    others: list[dict[str, str]] = [{}, {"Authorization": "Bearer opaque"}, {"X-API-Key": ""}]
    for headers in others:
        assert await verifier.verify(Envelope.of(headers)) is None
    with pytest.raises(IdentityRefused, match="wrong-key"):
        await verifier.verify(Envelope.of({"X-API-Key": "wrong", "Authorization": f"Bearer {friend.key}"}))
    with pytest.raises(IdentityRefused, match="several-keys"):
        await verifier.verify(Envelope.of([("X-API-Key", friend.key), ("X-API-Key", "x")]))


async def test_a_jwt_is_no_key_and_nothing_is_looked_up() -> None:
    """There is no database in this test."""
    assert await ApiKeyVerifier().verify(bearer(token())) is None


# Names.


async def test_names_in_development() -> None:
    found = await NameVerifier().verify(Envelope.of({"X-Agent-Name": "Bob"}))
    assert found is not None
    assert (found.agent_id, found.issuer, found.self_asserted) == ("Bob", "name", True)
    assert await NameVerifier().verify(Envelope.of()) is None
    assert await NameVerifier().verify(Envelope.of([("X-Agent-Name", "a"), ("X-Agent-Name", "b")])) is None


def test_names_in_production(settings: Settings) -> None:
    """No start, and an error of `manage.py check`."""
    settings.SELF_ASSERTED_ALLOWED = False
    settings.IDENTITY_VERIFIERS = ["trust.identity.name.NameVerifier"]
    with pytest.raises(ImproperlyConfigured):
        Resolver()
    assert [error.id for error in check_messages()] == ["trust.E001"]


def test_a_key_that_is_not_supported_is_told(settings: Settings) -> None:
    """As an error of `manage.py check`, not by a traceback."""
    settings.IDENTITY_VERIFIERS = ["trust.identity.jwt.JwtVerifier"]
    settings.JWT_ISSUERS = [entry(keys=[UNSUPPORTED])]
    (error,) = check_messages()
    assert (error.id, "not a public key" in error.msg) == ("trust.E001", True)


@pytest.mark.parametrize(
    "verifiers", [[], ["no.such.Verifier"], ["trust.identity.jwt.JwtVerifier"], ["trust.identity.base.Envelope"]]
)
def test_verifiers_that_can_not_be_made(settings: Settings, verifiers: list[str]) -> None:
    settings.IDENTITY_VERIFIERS, settings.JWT_ISSUERS = verifiers, []
    assert [error.id for error in check_messages()] == ["trust.E001"]


# The order of verifiers.


async def test_the_first_that_knows_decides() -> None:
    caller = AuthenticatedCaller(1, "a", 1, None, False)
    unsure, sure, never = Fixed(None), Fixed(identity(caller=caller)), Fixed(None)
    assert await Resolver([unsure, sure, never]).resolve(Envelope.of()) is caller
    assert (unsure.asked, sure.asked, never.asked) == (1, 1, 0)
    no = Fixed(IdentityRefused("no-good"))
    with pytest.raises(IdentityRefused, match="no-good"):
        await Resolver([unsure, no, sure]).resolve(Envelope.of())
    assert sure.asked == 1
    for headers, reason in (({}, "no-credential"), ({"Authorization": "Bearer x"}, "unknown-credential")):
        with pytest.raises(IdentityRefused, match=f"^{reason}$"):
            await Resolver([unsure]).resolve(Envelope.of(headers))


# From an identity to a caller.


def test_a_known_identity(
    friend: Keyed, stranger: Keyed, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """One statement; a disabled caller, another issuer's agent of the same id, and other letters are refused."""
    added = identity_add(caller=friend.caller, issuer=ISSUER, agent_id="agent-1")
    with django_assert_max_num_queries(1):
        found = caller_of(identity())
    assert (found.id, found.name, found.key_id) == (friend.caller.id, "friend", None)
    assert why(lambda: caller_of(VerifiedIdentity("agent-1", "x", "https://other.example"))) == "unknown-agent"
    assert why(lambda: caller_of(identity("Agent-1"))) == "unknown-agent"
    caller_set_enabled(caller=friend.caller, enabled=False)
    assert why(lambda: caller_of(identity())) == "caller-disabled"
    caller_set_enabled(caller=friend.caller, enabled=True)
    identity_remove(identity=added)
    assert why(lambda: caller_of(identity())) == "unknown-agent"


@pytest.mark.parametrize("agent_id", ["", "x" * 256, "a\x00b", "a\nb", "\ud800"])
def test_ids_that_can_not_be_kept(settings: Settings, agent_id: str) -> None:
    """Refused before the database is asked."""
    settings.ADMIT_UNKNOWN = [ISSUER]
    assert why(lambda: caller_of(identity(agent_id))) == "bad-agent-id"


def test_an_unknown_identity_is_admitted_where_its_issuer_is_named(workspace: Workspace, settings: Settings) -> None:
    settings.ADMIT_UNKNOWN = ["https://other.example"]
    assert why(lambda: caller_of(identity())) == "unknown-agent"
    assert not Caller.objects.exists()
    settings.ADMIT_UNKNOWN = [ISSUER]
    found = caller_of(identity())
    caller = Caller.objects.get()
    assert (caller.pk, caller.name, caller.level, caller.workspace) == (
        found.id,
        "travel-bot",
        Level.OBSERVE,
        workspace,
    )
    assert not caller.keys.exists()
    assert not caller.grants.exists()
    assert caller_of(identity(name="Another Name")).id == found.id
    caller_set_enabled(caller=caller, enabled=False)
    assert why(lambda: caller_of(identity())) == "caller-disabled"
    assert Caller.objects.count() == 1


def test_where_an_unknown_identity_goes(workspace: Workspace, other_workspace: Workspace, settings: Settings) -> None:
    """To the workspace that its issuer's rule names; with none named there must be one only."""
    settings.ADMIT_UNKNOWN = [ISSUER]
    assert caller_of(identity("a", workspace="other")).workspace_id == other_workspace.pk
    assert why(lambda: caller_of(identity("b", workspace="nowhere"))) == "no-workspace"
    assert why(lambda: caller_of(identity("b"))) == "no-workspace"


@pytest.mark.parametrize(
    ("display", "name"),
    [
        ("Travel Bot", "travel-bot"),
        ("Zoë's  Café/Agent", "zoe-s-cafe-agent"),
        ("../../etc/passwd", "etc-passwd"),
        ("东京", "agent"),
        ("", "agent"),
        ("x" * 39 + "-y", "x" * 39),
    ],
)
def test_names_are_made_of_display_names(display: str, name: str) -> None:
    assert name_from(display) == name


def test_a_name_that_is_taken_or_reserved_gets_a_number(friend: Keyed, settings: Settings) -> None:
    """Nobody gets to look like another by calling itself the same."""
    settings.ADMIT_UNKNOWN = [ISSUER]
    for agent, display, name in (
        ("a", "Friend", "friend-2"),
        ("b", "friend", "friend-3"),
        ("c", "a2a", "a2a-2"),
        ("d", "y" * 60, "y" * 40),
        ("e", "y" * 60, "y" * 38 + "-2"),
    ):
        assert caller_of(identity(agent, display)).name == name


@pytest.mark.django_db(transaction=True)
async def test_first_calls_at_the_same_time(workspace: Workspace, settings: Settings) -> None:
    """Of one agent: one caller. Of several with one name: one each."""
    settings.ADMIT_UNKNOWN = [ISSUER]
    for number in range(5):
        same = await asyncio.gather(*(run_db(caller_of, identity(f"same-{number}")) for _ in range(8)))
        assert len({caller.id for caller in same}) == 1
        others = await asyncio.gather(*(run_db(caller_of, identity(f"other-{number}-{n}")) for n in range(8)))
        assert len({caller.id for caller in others}) == 8
    assert await run_db(Caller.objects.count) == await run_db(CallerIdentity.objects.count) == 5 * 9


# The audit of refused calls.


def test_paths_are_collapsed() -> None:
    assert collapsed_path("/a2a") == "/a2a"
    assert collapsed_path("/a2a/v1/message:send") == "/a2a/v1/message:send"
    assert collapsed_path("/a2a/v1/tasks") == "/a2a/v1/tasks"
    for path in ("/a2a/v1/tasks/vk_secret:cancel", "/a2a/v1/tasks/x/pushNotificationConfigs/y"):
        assert collapsed_path(path) == "/a2a/v1/tasks/…"
    assert len(collapsed_path("/a" * 500 + "/tasks/x")) <= 100


def test_refused_calls_are_collapsed(db: None) -> None:
    refused_calls_record({("192.0.2.1", "wrong-key", "/a2a"): 2, ("192.0.2.2", "wrong-key", "/a2a"): 1})
    refused_calls_record({("192.0.2.1", "wrong-key", "/a2a"): 3})
    first, second = RefusedCall.objects.order_by("source")
    assert (first.count, second.count) == (5, 1)
    assert second.last_seen_at == second.first_seen_at == first.first_seen_at <= first.last_seen_at


def test_the_oldest_go(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "MOST_ROWS", 10)
    with_times = [RefusedCall(source=str(number), reason="r", path="/") for number in range(10)]
    RefusedCall.objects.bulk_create(with_times)
    refused_calls_record({("new", "r", "/"): 1})
    assert RefusedCall.objects.count() == 10
    assert RefusedCall.objects.filter(source="new").exists()
    assert not RefusedCall.objects.filter(source="0").exists()


async def _written(log: RefusalLog) -> None:
    assert log._writing is not None
    await log._writing


@pytest.mark.django_db(transaction=True)
async def test_a_flood_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 refused calls from as many addresses: few writes, few rows, all counted, nobody waits."""
    monkeypatch.setattr(refusals, "WRITE_SECONDS", 0.1)
    monkeypatch.setattr(refusals, "MOST_ROWS", 300)
    writes: list[int] = []

    def record(batch: dict[Any, int]) -> None:
        writes.append(sum(batch.values()))
        refused_calls_record(batch)

    monkeypatch.setattr(refusals, "refused_calls_record", record)
    log = RefusalLog()
    for number in range(20_000):
        log.note(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", "wrong-key", "/a2a")
        if number % 4000 == 0:
            await _written(log)
    await _written(log)
    assert sum(writes) == 20_000
    assert len(writes) == 6
    assert await run_db(RefusedCall.objects.count) <= 300
    assert await run_db(lambda: RefusedCall.objects.get(source="others").count) > 10_000

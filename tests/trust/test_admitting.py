"""Admission: the limit of agents for each issuer."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from tests.waiting import PATIENCE
from trust.identity import IdentityRefused, VerifiedIdentity
from trust.identity.admission import caller_of
from trust.models import Caller, CallerIdentity
from trust.services import identity_remove
from volcanic.models import Workspace

ISSUER, OTHER = "https://id.example", "https://other.example"


def admit(agent_id: str, issuer: str = ISSUER) -> str:
    """Returns the name of the caller that an agent became, or why it did not."""
    try:
        return caller_of(VerifiedIdentity(agent_id, f"agent {agent_id}", issuer)).name
    except IdentityRefused as refusal:
        return refusal.reason


@pytest.fixture(autouse=True)
def _admitting(settings: Settings) -> None:
    settings.ADMIT_UNKNOWN = [ISSUER, OTHER]


def test_so_many_of_each_issuer(workspace: Workspace, settings: Settings) -> None:
    """Those who are callers already go on, and one that is deleted makes room."""
    settings.MAX_ADMITTED_CALLERS = 2
    assert [admit(agent) for agent in "abcab"] == [
        *("agent-a", "agent-b", "too-many-agents", "agent-a", "agent-b"),
    ]
    assert [admit(agent, OTHER) for agent in "xyz"] == ["agent-x", "agent-y", "too-many-agents"]
    assert Caller.objects.count() == 4
    identity_remove(identity=CallerIdentity.objects.get(agent_id="a"))
    assert admit("c") == "agent-c"
    assert admit("a") == "too-many-agents"
    settings.MAX_ADMITTED_CALLERS = 1
    assert admit("c") == "agent-c"


def test_no_limit(workspace: Workspace, settings: Settings) -> None:
    settings.MAX_ADMITTED_CALLERS = 0
    assert {admit(str(number)) for number in range(30)} == {f"agent-{number}" for number in range(30)}


@pytest.mark.parametrize("same", [False, True])
def test_no_more_get_in_at_the_same_time(
    transactional_db: None, workspace: Workspace, settings: Settings, same: bool
) -> None:
    """Of many at once exactly those for whom there is room; many calls of one agent are all its own."""
    settings.MAX_ADMITTED_CALLERS = 3
    admit("first")
    threads = 12
    barrier = threading.Barrier(threads)

    def call(number: int) -> str:
        barrier.wait(PATIENCE)
        try:
            return admit("one" if same else str(number))
        finally:
            connection.close()

    with ThreadPoolExecutor(threads) as pool:
        said = list(pool.map(call, range(threads)))
    if same:
        assert set(said) == {"agent-one"}
        assert Caller.objects.count() == 2
        return
    assert said.count("too-many-agents") == threads - 2
    assert Caller.objects.count() == CallerIdentity.objects.count() == 3

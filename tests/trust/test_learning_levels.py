"""Levels of callers while the assistant learns: Observe, Learn, Propose, and Act by the owner alone."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as searching
from hypothesis import strategies as st
from pytest_django.fixtures import Settings

from tests.conftest import Keyed
from tests.trust.learned import AGENDA, DAYS, PARCEL, decided, drafted, learner, thrice
from trust.learning.services import (
    caller_learn,
    draft_reject,
    observations_reverse,
)
from trust.models import CHAT, AuditEntry, Caller, Grant, Level, Observation, Skill, SkillDraft
from trust.services import caller_set_enabled, caller_set_level
from volcanic.acting import acting_as

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broker_is_away")]

Decision = Observation.Decision
State = SkillDraft.State


def level_of(caller: Caller) -> Level:
    return Level(Caller.objects.get(pk=caller.pk).level)


def met(caller: Caller, times: int) -> Caller:
    Caller.objects.filter(pk=caller.pk).update(interaction_count=times)
    return caller


def changes_of(caller: Caller) -> list[tuple[str, str, str]]:
    rows = AuditEntry.objects.filter(caller_id=caller.pk, action="caller.level").order_by("id")
    return [(row.subject, row.actor, row.reason) for row in rows]


# Observe → Learn → Propose.


def test_observe_becomes_learn_after_so_many_interactions(stranger: Keyed, settings: Settings) -> None:
    settings.LEARN_AFTER = 5
    caller_learn(caller=met(stranger.caller, 4))
    assert level_of(stranger.caller) is Level.OBSERVE
    caller_learn(caller=met(stranger.caller, 5))
    assert level_of(stranger.caller) is Level.LEARN
    caller_learn(caller=stranger.caller)
    expected = ("observe → learn", "system", "5 interactions, none of the latest declined.")
    assert changes_of(stranger.caller) == [expected]


@pytest.mark.parametrize("held", [Decision.DECLINE, Decision.UNLIKE])
def test_a_decline_among_the_latest_holds_it_back(stranger: Keyed, settings: Settings, held: Decision) -> None:
    settings.LEARN_AFTER = 3
    decided(met(stranger.caller, 50), "x", held)
    for _ in range(2):
        decided(stranger.caller, "x", Decision.ASK)
    caller_learn(caller=stranger.caller)
    assert level_of(stranger.caller) is Level.OBSERVE
    decided(stranger.caller, "x", Decision.ASK)
    caller_learn(caller=stranger.caller)
    assert level_of(stranger.caller) is Level.LEARN


def test_a_decline_that_was_taken_back_holds_nothing(stranger: Keyed) -> None:
    one = decided(met(stranger.caller, 5), "x", Decision.DECLINE)
    observations_reverse(ids=[one.pk])
    caller_learn(caller=stranger.caller)
    assert level_of(stranger.caller) is Level.LEARN


def test_zero_is_never(stranger: Keyed, settings: Settings) -> None:
    settings.LEARN_AFTER = 0
    thrice(met(stranger.caller, 10**6))
    assert caller_learn(caller=stranger.caller) == []
    assert level_of(stranger.caller) is Level.OBSERVE


def test_who_is_shut_out_teaches_nothing(stranger: Keyed) -> None:
    thrice(met(stranger.caller, 5))
    caller_set_enabled(caller=stranger.caller, enabled=False)
    assert caller_learn(caller=stranger.caller) == []
    learner(stranger.caller)
    assert caller_learn(caller=stranger.caller) == []
    assert level_of(stranger.caller) is Level.LEARN


def test_whom_the_owner_put_back_stays_there(stranger: Keyed) -> None:
    """The owner's word counts more than the rule, until they raise the caller."""
    draft = drafted(met(stranger.caller, 50))
    assert level_of(stranger.caller) is Level.PROPOSE
    for level in (Level.LEARN, Level.OBSERVE):
        with acting_as("owner olivia"):
            caller_set_level(caller=stranger.caller, level=level)
        caller_learn(caller=stranger.caller)
        assert level_of(stranger.caller) is level
    with acting_as("owner olivia"):
        caller_set_level(caller=stranger.caller, level=Level.LEARN)
    caller_learn(caller=stranger.caller)
    assert level_of(stranger.caller) is Level.PROPOSE
    assert SkillDraft.objects.get() == draft


def test_learn_becomes_propose_with_an_open_draft_only(stranger: Keyed) -> None:
    caller = learner(stranger.caller)
    for day in DAYS[:2]:
        decided(caller, PARCEL.format(day))
    assert caller_learn(caller=caller) == []
    assert level_of(caller) is Level.LEARN
    decided(caller, PARCEL.format(DAYS[2]))
    (draft,) = caller_learn(caller=caller)
    assert level_of(caller) is Level.PROPOSE
    ((subject, actor, reason),) = changes_of(caller)
    assert (subject, actor, draft.name in reason) == ("learn → propose", "system", True)
    draft_reject(draft=draft, version=1)
    learner(caller)
    assert caller_learn(caller=caller) == []
    assert level_of(caller) is Level.LEARN


# Nothing without the owner.


SEEN = st.lists(
    st.tuples(
        st.sampled_from([PARCEL, AGENDA, "Please delete all mails of {}", "{}"]),
        st.sampled_from(DAYS),
        st.sampled_from(list(Decision)),
        st.sampled_from([CHAT, CHAT, CHAT, "notify-user"]),
    ),
    max_size=25,
)


@searching(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(level=st.sampled_from(list(Level)), seen=SEEN, count=st.integers(0, 100))
def test_nothing_makes_a_caller_act_but_the_owner(
    stranger: Keyed, level: Level, seen: list[tuple[str, str, Decision, str]], count: int
) -> None:
    caller = learner(met(stranger.caller, count), level)
    Observation.objects.all().delete()
    SkillDraft.objects.all().delete()
    for text, day, decision, skill in seen:
        decided(caller, text.format(day), decision, skill=skill)
        caller_learn(caller=caller)
    assert not Grant.objects.exists()
    assert not Skill.objects.exclude(workspace=None).exists()
    assert (level_of(caller) is Level.ACT) == (level is Level.ACT)
    assert level_of(caller).rank >= level.rank
    for draft in SkillDraft.objects.all():
        rows = Observation.objects.filter(pk__in=draft.evidence)
        assert len({row.task for row in rows}) >= 3
        assert {row.decision.replace("grant", "approve") for row in rows} == {draft.decision}
    if level is not Level.PROPOSE and level_of(caller) is Level.PROPOSE:
        assert SkillDraft.objects.filter(state=State.OPEN).exists()
    assert not AuditEntry.objects.filter(action="caller.level", subject__endswith="act").exists()

"""The whole table of what a request leads to."""

import itertools

import pytest

from trust.models import CHAT, NOTIFY_USER, QUERY_AVAILABILITY, Level, Skill
from trust.policy import Decision, Mode, decide

LOW = (Level.OBSERVE, Level.LEARN)
NONE: dict[str, Level | None] = {}
KINDS = {
    CHAT: Skill.Kind.ASSISTANT,
    NOTIFY_USER: Skill.Kind.BUILT_IN,
    QUERY_AVAILABILITY: Skill.Kind.BUILT_IN,
    "scheduling": Skill.Kind.ASSISTANT,
    "thermostat": Skill.Kind.HANDLER,
}
BUILT_IN = Decision(Mode.BUILT_IN)
DONE = Decision(Mode.FULL_TURN, reported=True)
ANSWERED = Decision(Mode.BUILT_IN, reported=True)
REVIEW, TRIAGE = Decision(Mode.REVIEW), Decision(Mode.TRIAGE)
OFFER = Decision(Mode.REVIEW, offers_grant=True)
DRAFT = Decision(Mode.TRIAGE, offers_draft=True)


def ask(
    level: Level, grants: dict[str, Level | None], skill: str, *, approved: bool = False, has_draft: bool = False
) -> Decision:
    kind = KINDS.get(skill)
    return decide(
        level=level, grants=grants, skill=skill, kind=kind, max_hops=3, approved=approved, has_draft=has_draft
    )


@pytest.mark.parametrize(
    ("skill", "granted", "observe_learn", "propose", "act"),
    [
        (NOTIFY_USER, False, BUILT_IN, BUILT_IN, BUILT_IN),
        (NOTIFY_USER, True, BUILT_IN, BUILT_IN, BUILT_IN),
        ("scheduling", True, REVIEW, OFFER, DONE),
        ("thermostat", True, REVIEW, OFFER, DONE),
        (QUERY_AVAILABILITY, True, REVIEW, OFFER, ANSWERED),
        (CHAT, False, TRIAGE, TRIAGE, TRIAGE),
        (CHAT, True, TRIAGE, TRIAGE, DONE),
    ],
)
def test_table(skill: str, granted: bool, observe_learn: Decision, propose: Decision, act: Decision) -> None:
    grants: dict[str, Level | None] = {skill: None} if granted else {}
    for level in LOW:
        assert ask(level, grants, skill) == observe_learn
    assert ask(Level.PROPOSE, grants, skill) == propose
    assert ask(Level.ACT, grants, skill) == act


@pytest.mark.parametrize(
    ("skill", "granted", "observe_learn", "propose", "act"),
    [
        (CHAT, False, TRIAGE, DRAFT, TRIAGE),
        (CHAT, True, TRIAGE, TRIAGE, DONE),
        ("scheduling", True, REVIEW, OFFER, DONE),
        (NOTIFY_USER, False, BUILT_IN, BUILT_IN, BUILT_IN),
    ],
)
def test_table_where_there_is_a_draft(
    skill: str, granted: bool, observe_learn: Decision, propose: Decision, act: Decision
) -> None:
    """It is shown at Propose, with plain requests that are not granted; it never makes anything be done."""
    grants: dict[str, Level | None] = {skill: None} if granted else {}
    for level in LOW:
        assert ask(level, grants, skill, has_draft=True) == observe_learn
    assert ask(Level.PROPOSE, grants, skill, has_draft=True) == propose
    assert ask(Level.ACT, grants, skill, has_draft=True) == act


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("skill", ["scheduling", "thermostat", QUERY_AVAILABILITY])
@pytest.mark.parametrize("approved", [False, True])
def test_a_named_skill_without_a_grant_is_rejected_at_every_level(level: Level, skill: str, approved: bool) -> None:
    """Whatever else is granted, and even if the owner approved the request while it was."""
    decision = ask(level, {CHAT: Level.ACT}, skill, approved=approved)
    assert decision.mode is Mode.REJECT
    assert "not granted" in decision.reason
    assert skill in decision.reason
    assert "plain request" in decision.reason
    assert "shown to the owner" in decision.reason


@pytest.mark.parametrize("level", Level)
def test_an_unknown_skill_is_rejected(level: Level) -> None:
    decision = ask(level, {CHAT: None}, "telepathy")
    assert decision.mode is Mode.REJECT
    assert "no skill 'telepathy'" in decision.reason


@pytest.mark.parametrize(("level", "own"), list(itertools.product(Level, Level)))
def test_a_grants_own_level_counts_for_its_skill_only(level: Level, own: Level) -> None:
    grants = {"scheduling": own, "thermostat": None}
    assert ask(level, grants, "scheduling") == ask(own, {"scheduling": None}, "scheduling")
    assert ask(level, grants, "thermostat") == ask(level, {"thermostat": None}, "thermostat")
    assert ask(level, grants, CHAT) == ask(level, NONE, CHAT)


@pytest.mark.parametrize("level", Level)
def test_what_the_owner_approved_is_done(level: Level) -> None:
    assert ask(level, NONE, CHAT, approved=True) == DONE
    assert ask(level, {"scheduling": None}, "scheduling", approved=True) == DONE
    assert ask(level, {QUERY_AVAILABILITY: None}, QUERY_AVAILABILITY, approved=True) == ANSWERED


@pytest.mark.parametrize(("hops", "rejected"), [(0, False), (3, False), (4, True)])
@pytest.mark.parametrize("skill", [CHAT, NOTIFY_USER, "scheduling"])
def test_too_many_hops(hops: int, rejected: bool, skill: str) -> None:
    decision = decide(
        level=Level.ACT,
        grants={CHAT: None, "scheduling": None},
        skill=skill,
        kind=KINDS[skill],
        hops=hops,
        max_hops=3,
        approved=True,
    )
    assert (decision.mode is Mode.REJECT) == rejected

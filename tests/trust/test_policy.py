"""The whole table of what a request leads to."""

import itertools

import pytest

from trust.models import CHAT, NOTIFY_USER, QUERY_AVAILABILITY, Level, Skill
from trust.policy import Handling, Mode, decide

LOW = (Level.OBSERVE, Level.LEARN)
NONE: dict[str, Level | None] = {}
KINDS = {
    CHAT: Skill.Kind.ASSISTANT,
    NOTIFY_USER: Skill.Kind.BUILT_IN,
    QUERY_AVAILABILITY: Skill.Kind.BUILT_IN,
    "scheduling": Skill.Kind.ASSISTANT,
    "thermostat": Skill.Kind.HANDLER,
}
BUILT_IN = Handling(Mode.BUILT_IN)
DONE = Handling(Mode.FULL_TURN, reported=True)
ANSWERED = Handling(Mode.BUILT_IN, reported=True)
REVIEW, TRIAGE = Handling(Mode.REVIEW), Handling(Mode.TRIAGE)
OFFER = Handling(Mode.REVIEW, offers_grant=True)
DRAFT = Handling(Mode.TRIAGE, offers_draft=True)


def ask(level: Level, grants: dict[str, Level | None], skill: str, **facts: bool) -> Handling:
    return decide(level=level, grants=grants, skill=skill, kind=KINDS.get(skill), max_hops=3, **facts)


PLAIN: dict[str, bool] = {}
# There is a draft of a skill that would cover it; the owner has it before them, or has approved it.
HAS_DRAFT, HELD, APPROVED = {"has_draft": True}, {"held": True}, {"approved": True}


@pytest.mark.parametrize(
    ("skill", "granted", "facts", "observe_learn", "propose", "act"),
    [
        (NOTIFY_USER, False, PLAIN, BUILT_IN, BUILT_IN, BUILT_IN),
        (NOTIFY_USER, True, PLAIN, BUILT_IN, BUILT_IN, BUILT_IN),
        ("scheduling", True, PLAIN, REVIEW, OFFER, DONE),
        ("thermostat", True, PLAIN, REVIEW, OFFER, DONE),
        (QUERY_AVAILABILITY, True, PLAIN, REVIEW, OFFER, ANSWERED),
        (CHAT, False, PLAIN, TRIAGE, TRIAGE, TRIAGE),
        (CHAT, True, PLAIN, TRIAGE, TRIAGE, DONE),
        # A draft is shown at Propose, with plain requests that are not granted; it never makes anything be done.
        (CHAT, False, HAS_DRAFT, TRIAGE, DRAFT, TRIAGE),
        (CHAT, True, HAS_DRAFT, TRIAGE, TRIAGE, DONE),
        ("scheduling", True, HAS_DRAFT, REVIEW, OFFER, DONE),
        (NOTIFY_USER, False, HAS_DRAFT, BUILT_IN, BUILT_IN, BUILT_IN),
        # What is held is the owner's to decide, whatever is granted.
        (CHAT, False, HELD, TRIAGE, TRIAGE, TRIAGE),
        (CHAT, True, HELD, TRIAGE, TRIAGE, TRIAGE),
        ("scheduling", True, HELD, REVIEW, OFFER, REVIEW),
        (QUERY_AVAILABILITY, True, HELD, REVIEW, OFFER, REVIEW),
        # What they approved is done, at every level.
        (CHAT, False, APPROVED, DONE, DONE, DONE),
        (CHAT, False, APPROVED | HELD, DONE, DONE, DONE),
        ("scheduling", True, APPROVED | HELD, DONE, DONE, DONE),
        (QUERY_AVAILABILITY, True, APPROVED | HELD, ANSWERED, ANSWERED, ANSWERED),
    ],
)
def test_table(
    skill: str, granted: bool, facts: dict[str, bool], observe_learn: Handling, propose: Handling, act: Handling
) -> None:
    grants: dict[str, Level | None] = {skill: None} if granted else {}
    for level in LOW:
        assert ask(level, grants, skill, **facts) == observe_learn
    assert ask(Level.PROPOSE, grants, skill, **facts) == propose
    assert ask(Level.ACT, grants, skill, **facts) == act


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("skill", ["scheduling", "thermostat", QUERY_AVAILABILITY])
@pytest.mark.parametrize("approved", [False, True])
def test_a_named_skill_without_a_grant_is_rejected_at_every_level(level: Level, skill: str, approved: bool) -> None:
    """Even if other skills are granted, or the owner approved the request while this one was."""
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

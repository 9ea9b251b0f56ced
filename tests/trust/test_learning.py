"""Learning from the owner's decisions, in the process: drafts, and decisions that make none."""

import uuid
from functools import partial

import pytest

from tests.conftest import Keyed
from tests.trust.learned import AGENDA, DAYS, PARCEL, at_once, decided, drafted, learner, thrice, waiting
from trust.decisions import review_decide
from trust.errors import DraftDecidedError, ReviewChangedError
from trust.learning.matching import learned_skill, open_draft
from trust.learning.observed import alike_groups, observations_of
from trust.learning.services import (
    caller_learn,
    draft_approve,
    draft_reject,
    observations_reverse,
)
from trust.models import CHAT, AuditEntry, Caller, Level, Observation, SkillDraft
from trust.services import grant_revoke, skill_delete, skill_update
from volcanic.models import Notification

Decision = Observation.Decision
State = SkillDraft.State

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broker_is_away")]


def test_the_latest_are_looked_at(stranger: Keyed) -> None:
    for _ in range(70):
        decided(stranger.caller, "x")
    rows = observations_of(stranger.caller.pk)
    assert (len(rows), rows == sorted(rows, key=lambda one: one.pk)) == (60, True)
    assert alike_groups(rows[:2], None) == []


def test_three_decided_alike_make_one_draft(stranger: Keyed) -> None:
    draft = drafted(stranger.caller)
    assert (draft.state, draft.decision, len(draft.evidence)) == (State.OPEN, "approve", 3)
    decided(stranger.caller, PARCEL.format("Sunday"))
    assert caller_learn(caller=stranger.caller) == []
    assert SkillDraft.objects.get() == draft


ORDER = "Please note that order {} has come."
FREE = "Is {} free on {}?"
AT = "Please remind me at {}"


def _asked(kind: str, *details: str | tuple[str, str]) -> list[str]:
    return [kind.format(*([detail] if isinstance(detail, str) else detail)) for detail in details]


def _free(*names: str) -> list[str]:
    return _asked(FREE, *((name, day) for name in names for day in DAYS[:1]))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_asked(ORDER, "4711", "4715", "4719"), _asked(ORDER, "4723", "4727", "4731")),
        (_free("Anna", "Bert", "Carl"), _free("Dora", "Emil", "Fred")),
        (_asked(PARCEL, *DAYS[:3]), _asked(PARCEL, "3 May", "10 May", "17 May")),
    ],
)
def test_what_an_approved_skill_does_not_do_is_learned(stranger: Keyed, first: list[str], second: list[str]) -> None:
    """It still comes to the owner: each such request is done by one skill."""
    caller = learner(stranger.caller)
    for text in first:
        decided(caller, text)
    (draft,) = caller_learn(caller=caller)
    old = draft_approve(draft=draft, version=1)
    for text in [*second[:2], first[0]]:
        decided(caller, text)
        assert open_draft(text, caller_id=caller.pk) is None
    assert caller_learn(caller=caller) == []  # two more, and one that is done already
    decided(caller, second[2])
    (other,) = caller_learn(caller=caller)
    assert sorted(other.examples) == sorted(second)
    assert open_draft(second[0], caller_id=caller.pk) == other
    assert caller_learn(caller=caller) == []  # it is open, and known
    new = draft_approve(draft=other, version=1)
    assert new != old
    for texts, skill in ((first, old), (second, new)):
        for text in texts:
            assert learned_skill(text, workspace_id=caller.workspace_id, granted=[old.slug, new.slug]) == skill
    assert caller_learn(caller=caller) == []


def test_what_an_approved_skill_does_stays_done(stranger: Keyed) -> None:
    """Of two skills that fit a request none is used: what would be in the way of the first is not proposed."""
    caller = learner(stranger.caller)
    for text in _asked(AT, "8:15", "8:30", "8:45"):
        decided(caller, text)
    (draft,) = caller_learn(caller=caller)
    skill = draft_approve(draft=draft, version=1)
    for text in _asked(AT, "8:00", "9:00", "9:15"):
        decided(caller, text)
    assert caller_learn(caller=caller) == []
    assert learned_skill(AT.format("8:20"), workspace_id=caller.workspace_id, granted=[skill.slug]) == skill


def test_what_the_owner_made_of_an_approved_skill_counts(stranger: Keyed) -> None:
    """They narrowed its examples: that is no reason to propose the rest of them anew."""
    draft = drafted(stranger.caller)
    skill = draft_approve(draft=draft, version=1)
    skill_update(skill=skill, examples=["Something else"])
    assert caller_learn(caller=stranger.caller) == []
    thrice(stranger.caller)
    assert len(caller_learn(caller=stranger.caller)) == 1


@pytest.mark.parametrize("state", ["open", "rejected"])
def test_what_is_like_an_undecided_or_rejected_draft_is_known(stranger: Keyed, state: str) -> None:
    caller = learner(stranger.caller)
    for text in _asked(ORDER, "4711", "4715", "4719"):
        decided(caller, text)
    (draft,) = caller_learn(caller=caller)
    if state == "rejected":
        draft_reject(draft=draft, version=1)
    for text in _asked(ORDER, "4723", "4727", "4731"):
        decided(caller, text)
    assert caller_learn(caller=caller) == []


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (
            _asked(ORDER, "4711", "4715", "4719"),
            "Covered are only requests that say the same as an example, word for word. "
            "Other requests still come to you.",
        ),
        (
            _asked(AT, "8:15", "8:30", "8:45"),
            "Covered are requests that say the same as an example, word for word. Only the time may differ: "
            "at a time between 08:15 and 08:45. Other requests still come to you.",
        ),
    ],
)
def test_the_owner_is_told_what_would_be_handled(stranger: Keyed, texts: list[str], told: str) -> None:
    for text in texts:
        decided(learner(stranger.caller), text)
    caller_learn(caller=stranger.caller)
    said = Notification.objects.get(kind="draft").text
    assert said.startswith(f"You approved 3 requests like “{texts[-1]}”. {told}")
    assert "Handle this from now on?" in said


@pytest.mark.parametrize(
    ("decisions", "made"),
    [
        ("approve approve grant", 1),
        ("grant grant grant", 1),
        ("reply reply reply", 1),
        ("approve approve decline", 0),
        ("approve approve reply", 0),
        ("approve decline approve approve", 0),
        ("reply approve approve reply reply", 0),
        ("approve approve approve decline", 0),
        ("approve approve approve unlike", 0),
        ("decline approve approve approve", 1),
        ("approve ask approve ask approve", 1),
        ("decline decline decline", 0),
        ("ask ask ask", 0),
        ("unlike unlike unlike", 0),
    ],
)
def test_what_is_decided_alike(stranger: Keyed, decisions: str, made: int) -> None:
    caller = learner(stranger.caller, Level.PROPOSE)
    for number, decision in enumerate(decisions.split()):
        decided(caller, PARCEL.format(DAYS[number % 4]), Decision(decision), reply="r")
    assert len(caller_learn(caller=caller)) == made


def test_one_task_counts_once_with_its_last_decision(stranger: Keyed) -> None:
    """It was approved, put before the owner again since something changed, and approved again."""
    caller = learner(stranger.caller)
    task = uuid.uuid4()
    thrice(caller, task=task)
    decided(caller, PARCEL.format("Sunday"))
    assert caller_learn(caller=caller) == []
    decided(caller, PARCEL.format("Sunday"))
    (draft,) = caller_learn(caller=caller)
    assert len(draft.evidence) == 3


def test_requests_for_a_named_skill_teach_nothing_of_plain_ones(stranger: Keyed) -> None:
    caller = learner(stranger.caller)
    thrice(caller, skill="print-agenda")
    assert caller_learn(caller=caller) == []


def test_what_is_too_long_for_an_example_is_not_learned(stranger: Keyed) -> None:
    """Cut, an example would be like no request, and the draft be proposed anew each time."""
    caller = learner(stranger.caller)
    thrice(caller, "Please note this for {}: " + "and so on " * 60)
    assert caller_learn(caller=caller) == []
    thrice(caller, "Please note this for {}: " + "and so on " * 40)
    (draft,) = caller_learn(caller=caller)
    assert caller_learn(caller=caller) == []
    draft_approve(draft=draft, version=1)


def test_reversed_decisions_teach_nothing_and_withdraw_what_they_taught(stranger: Keyed) -> None:
    draft = drafted(stranger.caller)
    review = waiting(stranger.caller, draft)
    assert observations_reverse(ids=draft.evidence[:1], reason="a slip") == 1
    assert observations_reverse(ids=draft.evidence[:1]) == 0
    draft.refresh_from_db()
    assert draft.state == State.WITHDRAWN
    line = AuditEntry.objects.get(action="draft.withdrawn")
    assert (line.subject, line.reason) == (draft.slug, "a slip")
    # The review shows it no longer, and what was shown can't be granted.
    with pytest.raises(ReviewChangedError):
        review_decide(review_id=review.pk, decision=Decision.GRANT, digest=review.digest)
    review.refresh_from_db()
    assert review.draft is None
    assert caller_learn(caller=stranger.caller) == []
    with pytest.raises(DraftDecidedError, match="withdrawn"):
        draft_approve(draft=draft, version=1)
    # With a new one there are three again.
    decided(stranger.caller, PARCEL.format("Sunday"))
    assert len(caller_learn(caller=stranger.caller)) == 1


def test_a_rejected_draft_is_remembered_by_its_kind(stranger: Keyed) -> None:
    draft = drafted(stranger.caller)
    draft_reject(draft=draft, version=1, reason="I want to see these.")
    assert AuditEntry.objects.get(action="draft.rejected").reason == "I want to see these."
    thrice(stranger.caller)
    assert caller_learn(caller=stranger.caller) == []
    thrice(stranger.caller, AGENDA)
    (other,) = caller_learn(caller=stranger.caller)
    assert other.examples[0] == AGENDA.format("Friday")


def test_a_callers_drafts_are_its_own(stranger: Keyed, friend: Keyed) -> None:
    first = drafted(stranger.caller)
    second = drafted(friend.caller)
    assert (second.caller, first.slug == second.slug) == (friend.caller, False)
    draft_approve(draft=first, version=1)
    assert [grant.skill.slug for grant in friend.caller.grants.select_related("skill")] == [CHAT]
    second.refresh_from_db()
    assert second.state == State.OPEN


@pytest.mark.parametrize("how", ["revoked", "deleted"])
def test_what_was_taken_back_takes_three_new_ones(stranger: Keyed, how: str) -> None:
    skill = draft_approve(draft=drafted(stranger.caller), version=1)
    assert grant_revoke(caller=stranger.caller, slug=skill.slug) if how == "revoked" else skill_delete(skill=skill)
    assert SkillDraft.objects.get().state == State.WITHDRAWN
    for number, day in enumerate(DAYS[:3], 1):
        decided(stranger.caller, PARCEL.format(day))
        assert len(caller_learn(caller=stranger.caller)) == number // 3


@pytest.mark.django_db(transaction=True)
def test_of_two_that_learn_at_once_one_makes_the_draft(stranger: Keyed) -> None:
    learner(stranger.caller)
    for kind in (PARCEL, AGENDA, "Please water the plants on {}"):
        thrice(stranger.caller, kind)
        callers = [Caller.objects.get(pk=stranger.caller.pk) for _ in range(3)]
        made = at_once([partial(caller_learn, caller=caller) for caller in callers])
        assert sum(map(len, made)) == 1
    assert SkillDraft.objects.count() == 3

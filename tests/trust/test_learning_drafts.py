"""Decisions on drafts: edits, approvals and rejections, each of the version that was shown."""

from functools import partial
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from tests.conftest import Keyed
from tests.trust.learned import at_once, drafted, waiting
from trust.decisions import review_decide
from trust.errors import DraftDecidedError, ReviewChangedError
from trust.learning.services import (
    draft_approve,
    draft_reject,
    draft_update,
)
from trust.models import AuditEntry, Caller, Grant, Level, Observation, Review, Skill, SkillDraft
from trust.services import grant_revoke, skill_create

Decision = Observation.Decision
State = SkillDraft.State

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broker_is_away")]


def level_of(caller: Caller) -> Level:
    return Level(Caller.objects.get(pk=caller.pk).level)


def test_edits_name_the_version_they_are_of(stranger: Keyed) -> None:
    draft = drafted(stranger.caller)
    SkillDraft.objects.update(preview="answer", previewed_at=draft.created_at)
    edited = draft_update(draft=draft, version=1, name=" Parcels ", tools=["read_file"])
    assert (edited.name, edited.tools, edited.version, edited.previewed_at) == ("Parcels", ["read_file"], 2, None)
    assert AuditEntry.objects.get(action="draft.changed").reason == "name, tools"
    with pytest.raises(DraftDecidedError, match="edited meanwhile"):
        draft_update(draft=draft, version=1, name="Mine")
    with pytest.raises(DraftDecidedError, match="edited meanwhile"):
        draft_approve(draft=draft, version=1)
    with pytest.raises(DraftDecidedError, match="edited meanwhile"):
        draft_reject(draft=draft, version=1)
    draft_approve(draft=draft, version=2)
    with pytest.raises(DraftDecidedError, match="approved"):
        draft_update(draft=draft, version=2, name="Mine")
    assert Skill.objects.get(slug=draft.slug).tools == ["read_file"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"tools": ["bash", "fly"]}, "tools"),
        ({"tools": "bash"}, "tools"),
        ({"tools": None}, "tools"),
        ({"tools": [3]}, "tools"),
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"description": "x" * 2001}, "description"),
        ({"instructions": ""}, "instructions"),
        ({"instructions": "x" * 20_001}, "instructions"),
        ({"examples": []}, "examples"),
        ({"examples": ["x" * 501]}, "examples"),
        ({"examples": ["x", " "]}, "examples"),
    ],
)
def test_edits_that_no_skill_could_have(stranger: Keyed, changes: dict[str, Any], field: str) -> None:
    draft = drafted(stranger.caller)
    with pytest.raises(ValidationError) as raised:
        draft_update(draft=draft, version=1, **changes)
    assert list(raised.value.message_dict) == [field]
    draft.refresh_from_db()
    assert draft.version == 1


def test_edits_hold_what_can_be_stored(stranger: Keyed) -> None:
    draft = draft_update(draft=drafted(stranger.caller), version=1, name="a\x00", examples=["b\x00\ud800"])
    assert (draft.name, draft.examples) == ("a\ufffd", ["b\ufffd\ufffd"])


@pytest.mark.django_db(transaction=True)
def test_approving_twice_at_once(stranger: Keyed) -> None:
    draft = drafted(stranger.caller)
    same = [SkillDraft.objects.get(pk=draft.pk) for _ in range(3)]
    results = at_once([partial(draft_approve, draft=one, version=1) for one in same])
    (skill,) = [result for result in results if isinstance(result, Skill)]
    losers = [result for result in results if result is not skill]
    assert all(isinstance(loser, DraftDecidedError) and "approved" in str(loser) for loser in losers)
    assert list(Skill.objects.exclude(workspace=None)) == [skill]
    assert [(grant.skill, grant.level) for grant in stranger.caller.grants.all()] == [(skill, Level.ACT)]
    assert level_of(stranger.caller) is Level.PROPOSE


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", range(5))
def test_granting_and_editing_at_once(stranger: Keyed, turn: int) -> None:
    """Neither locks the other out, and what is granted is what was shown."""
    draft = drafted(stranger.caller)
    review = waiting(stranger.caller, draft)
    granted, edited = at_once(
        [
            lambda: review_decide(review_id=review.pk, decision=Decision.GRANT, digest=review.digest),
            lambda: draft_update(draft=SkillDraft.objects.get(pk=draft.pk), version=1, instructions="Other words."),
        ]
    )
    assert isinstance(granted, Review) == isinstance(edited, DraftDecidedError)
    assert isinstance(edited, SkillDraft) == isinstance(granted, ReviewChangedError)
    assert not Skill.objects.filter(instructions="Other words.").exists()


def test_what_was_shown_of_a_draft_is_what_is_granted(stranger: Keyed) -> None:
    draft = drafted(stranger.caller)
    review, other = waiting(stranger.caller, draft), waiting(stranger.caller, draft, "Another.")
    draft_update(draft=draft, version=1, instructions="Do more.")
    for decision in (Decision.GRANT, Decision.APPROVE):
        with pytest.raises(ReviewChangedError, match="changed since"):
            review_decide(review_id=review.pk, decision=decision, digest=review.digest)
    assert not Grant.objects.filter(caller=stranger.caller).exists()
    assert not Observation.objects.filter(review=review).exists()
    before, review = review.digest, Review.objects.get(pk=review.pk)
    assert before != review.digest
    review_decide(review_id=review.pk, decision=Decision.GRANT, digest=review.digest)
    skill = Skill.objects.get(slug=draft.slug)
    assert (skill.instructions, Observation.objects.latest("id").skill) == ("Do more.", skill.slug)
    # The other one shows a draft that is decided: it can still be approved by itself.
    other.refresh_from_db()
    with pytest.raises(ReviewChangedError, match="decided before"):
        review_decide(review_id=other.pk, decision=Decision.GRANT, digest=other.digest)
    review_decide(review_id=other.pk, decision=Decision.APPROVE, digest=other.digest)


def test_a_rejected_draft_is_shown_no_longer(stranger: Keyed) -> None:
    draft = drafted(stranger.caller)
    review = waiting(stranger.caller, draft)
    draft_reject(draft=draft, version=1)
    with pytest.raises(ReviewChangedError):
        review_decide(review_id=review.pk, decision=Decision.GRANT, digest=review.digest)
    review.refresh_from_db()
    assert review.draft is None


@pytest.mark.parametrize("taken", ["id", "alias"])
def test_an_id_that_is_taken_meanwhile(stranger: Keyed, taken: str) -> None:
    """The draft gets another: its id is nothing that the owner could edit."""
    draft = drafted(stranger.caller)
    names: dict[str, Any] = {"slug": draft.slug} if taken == "id" else {"slug": "mine", "aliases": [draft.slug]}
    mine = skill_create(workspace=stranger.caller.workspace, name="Mine", description="Mine.", **names)
    skill = draft_approve(draft=draft, version=1)
    assert (skill != mine, skill.by_example) == (True, True)
    mine.refresh_from_db()
    assert (mine.by_example, Grant.objects.get(caller=stranger.caller).skill) == (False, skill)
    draft.refresh_from_db()
    assert (draft.skill, draft.slug) == (skill, skill.slug)
    # Taking it back finds what it came from.
    grant_revoke(caller=stranger.caller, slug=skill.slug)
    assert not Observation.objects.filter(reversed_at=None).exists()


def test_what_fails_to_become_a_skill_leaves_the_draft_open(stranger: Keyed) -> None:
    draft = drafted(stranger.caller)
    SkillDraft.objects.update(examples=["x" * 501])
    with pytest.raises(ValidationError):
        draft_approve(draft=draft, version=1)
    draft.refresh_from_db()
    assert draft.state == State.OPEN
    assert not Skill.objects.exclude(workspace=None).exists()

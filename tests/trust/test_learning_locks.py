"""Locks are taken in one order: nothing that the owner does at once with something else locks that out."""

import threading
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection, transaction

from tests.conftest import Keyed
from tests.trust.learned import PARCEL, at_once, decided, drafted, thrice, waiting
from tests.waiting import PATIENCE, wait_for
from trust.decisions import review_decide
from trust.errors import DraftDecidedError
from trust.learning.services import caller_learn, draft_approve, draft_reject, not_like_this, observations_reverse
from trust.models import Caller, Grant, Level, Observation, Review, Skill, SkillDraft
from trust.services import caller_set_enabled, caller_set_level, grant_add, grant_revoke, skill_delete

Decision = Observation.Decision

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker_is_away")]

_WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # else the same is told all through a transaction
        cursor.execute(_WAITS)
        return cursor.fetchone() is not None


def between(first: Callable[[], Any], other: Callable[[], Any], then: Callable[[], Any]) -> list[Any]:
    """Does `first` and `then` in one transaction, and has `other` begun in between, in a thread: so far that it waits
    for a lock, or to its end. Returns what `other` and `then` returned, or how `other` was told no."""
    said: list[Any] = []

    def run() -> None:
        try:
            said.append(other())
        except DraftDecidedError as error:
            said.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    with transaction.atomic():
        first()
        thread.start()
        wait_for(lambda: not thread.is_alive() or _somebody_waits())
        answer = then()
    thread.join(PATIENCE)
    assert len(said) == 1, "it was locked out"
    return [said[0], answer]


class Scene:
    """A draft that is open again, whose skill was granted by hand, and a review that shows it."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        skill = draft_approve(draft=drafted(caller), version=1)
        assert not_like_this(caller=caller, slug=skill.slug, task=uuid.uuid4(), request="x")
        grant_add(caller=caller, slug=skill.slug)
        self.skill = skill
        self.draft = SkillDraft.objects.get()
        self.review = waiting(caller, self.draft)

    def again(self) -> Caller:
        """Returns the caller as another process has it."""
        return Caller.objects.get(pk=self.caller.pk)

    def holds_caller(self) -> None:
        caller_set_level(caller=self.again(), level=Level.LEARN)

    def holds_review(self) -> None:
        Review.objects.filter(pk=self.review.pk).update(note="held")

    def holds_grant(self) -> None:
        Grant.objects.filter(caller=self.caller).update(level=Level.PROPOSE)

    def reverse(self) -> int:
        return observations_reverse(ids=list(Observation.objects.values_list("pk", flat=True)))

    def revoke(self) -> bool:
        return grant_revoke(caller=self.again(), slug=self.skill.slug)

    def unlike(self) -> bool:
        return not_like_this(caller=self.again(), slug=self.skill.slug, task=uuid.uuid4(), request="x", text="No.")

    def decide(self, decision: Decision = Decision.APPROVE) -> Review:
        review = Review.objects.get(pk=self.review.pk)
        return review_decide(review_id=review.pk, decision=decision, digest=review.digest)

    def grant(self) -> Review:
        return self.decide(Decision.GRANT)

    def approve(self) -> Skill:
        draft = SkillDraft.objects.get(pk=self.draft.pk)
        return draft_approve(draft=draft, version=draft.version)

    def reject(self) -> None:
        draft = SkillDraft.objects.get(pk=self.draft.pk)
        draft_reject(draft=draft, version=draft.version)

    def disable(self) -> bool:
        return caller_set_enabled(caller=self.again(), enabled=False)

    def delete(self) -> bool:
        return skill_delete(skill=Skill.objects.get(pk=self.skill.pk))

    def learn(self) -> list[SkillDraft]:
        return caller_learn(caller=self.again())


@pytest.fixture
def scene(stranger: Keyed) -> Scene:
    return Scene(stranger.caller)


def test_taking_back_waits_for_a_decision_and_does_not_hold_it(scene: Scene) -> None:
    done, review = between(scene.holds_review, scene.reverse, scene.decide)
    assert (done, review.state) == (4, Review.State.APPROVED)
    assert SkillDraft.objects.get().state == SkillDraft.State.WITHDRAWN


def test_taking_back_and_revoking(scene: Scene) -> None:
    between(scene.holds_review, scene.reverse, scene.revoke)
    assert SkillDraft.objects.get().state == SkillDraft.State.WITHDRAWN
    assert not Observation.objects.filter(reversed_at=None, decision="approve").exists()


@pytest.mark.parametrize("act", [Scene.unlike, Scene.disable])
def test_taking_back_and_what_begins_with_the_caller(scene: Scene, act: Callable[[Scene], bool]) -> None:
    done, answer = between(scene.holds_caller, scene.reverse, partial(act, scene))
    assert (done, answer) == (4, True)


def test_deleting_a_skill_waits_for_a_decision_that_grants_it(scene: Scene) -> None:
    done, review = between(scene.holds_review, scene.delete, scene.grant)
    assert (done, review.state) == (True, Review.State.APPROVED)
    assert not Skill.objects.exclude(workspace=None).exists()


def test_deleting_a_skill_waits_for_a_draft_that_becomes_it(scene: Scene) -> None:
    done, skill = between(scene.holds_grant, scene.delete, scene.approve)
    assert done
    assert not Skill.objects.filter(pk=skill.pk).exists()


def test_revoking_and_granting(scene: Scene) -> None:
    """Both take reviews before grants."""
    revoked, review = between(scene.holds_review, scene.revoke, scene.grant)
    assert (revoked, review.state) == (True, Review.State.APPROVED)


def test_approving_and_revoking(scene: Scene) -> None:
    """The grant is revoked, and then the draft is withdrawn: an approval takes them in the same order."""
    refused, revoked = between(scene.holds_grant, scene.approve, scene.revoke)
    assert (isinstance(refused, DraftDecidedError), revoked) == (True, True)
    assert not Grant.objects.filter(caller=scene.caller).exists()


def test_what_is_taken_back_while_it_becomes_a_draft_withdraws_it(stranger: Keyed) -> None:
    """Taking it back waits for the draft, and finds it."""
    Caller.objects.filter(pk=stranger.caller.pk).update(level=Level.LEARN)
    rows = thrice(stranger.caller)
    caller = Caller.objects.get(pk=stranger.caller.pk)
    done, made = between(
        lambda: None if caller_learn(caller=caller) else pytest.fail("no draft"),
        partial(observations_reverse, ids=[rows[0].pk]),
        SkillDraft.objects.get,
    )
    made.refresh_from_db()
    assert (done, made.state) == (1, SkillDraft.State.WITHDRAWN)


def test_learning_waits_for_what_is_taken_back(stranger: Keyed) -> None:
    Caller.objects.filter(pk=stranger.caller.pk).update(level=Level.LEARN)
    rows = thrice(stranger.caller)
    caller = Caller.objects.get(pk=stranger.caller.pk)
    made, _ = between(
        partial(observations_reverse, ids=[rows[0].pk]), partial(caller_learn, caller=caller), lambda: None
    )
    assert made == []


@pytest.mark.parametrize("turn", range(8))
def test_all_at_once(scene: Scene, turn: int) -> None:
    decided(scene.caller, PARCEL.format("Sunday"))
    calls = [
        *(scene.reverse, scene.revoke, scene.unlike, scene.grant, scene.approve),
        *(scene.reject, scene.delete, scene.learn, scene.disable),
    ]
    answers = at_once([partial(_tolerant, call) for call in calls[turn:] + calls[:turn]])
    assert len(answers) == len(calls)


def _tolerant(call: Callable[[], Any]) -> Any:
    """Any answer of ours will do; one of the database's (a deadlock) is an error."""
    try:
        return call()
    except (ValidationError, Skill.DoesNotExist, SkillDraft.DoesNotExist) as error:
        return error

"""Decisions that race: threads on the real database. What follows a decision is tested on the running product."""

from functools import partial

import pytest
from django.core.exceptions import ValidationError

from a2a_server.models import Task, TaskState
from a2a_server.services import task_cancel
from tests.conftest import Keyed
from tests.trust.learned import at_once, waiting
from trust.decisions import review_decide
from trust.errors import ReviewDecidedError, ReviewVoidError
from trust.models import Grant, Observation, Review
from trust.services import caller_set_enabled, review_add

Decision = Observation.Decision


pytestmark = pytest.mark.usefixtures("broker_is_away")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "decisions",
    [
        (Decision.APPROVE, Decision.APPROVE),
        (Decision.APPROVE, Decision.DECLINE),
        (Decision.GRANT, Decision.REPLY),
        (Decision.ASK, Decision.APPROVE),
        (Decision.APPROVE, Decision.DECLINE, Decision.REPLY, Decision.GRANT, Decision.ASK, Decision.APPROVE),
    ],
)
def test_of_decisions_that_race_one_is_taken(stranger: Keyed, decisions: tuple[Decision, ...]) -> None:
    """A double click, two tabs, approve with decline: one decision, and the others see it."""
    for _ in range(5):
        review = waiting(stranger.caller)

        def decide(decision: Decision, review: Review = review) -> Review:
            return review_decide(review_id=review.pk, decision=decision, digest=review.digest, text="words")

        results = at_once([partial(decide, one) for one in decisions])
        (taken,) = [result for result in results if isinstance(result, Review)]
        losers = [result for result in results if result is not taken]
        assert all(isinstance(loser, ReviewDecidedError) for loser in losers)
        assert all("decided before" in str(loser) for loser in losers)
        review.refresh_from_db()
        assert review.state == taken.state
        (seen,) = Observation.objects.filter(review=review)
        expected = {
            Decision.APPROVE: TaskState.SUBMITTED,
            Decision.GRANT: TaskState.SUBMITTED,
            Decision.REPLY: TaskState.COMPLETED,
            Decision.ASK: TaskState.INPUT_REQUIRED,
            Decision.DECLINE: TaskState.REJECTED,
        }
        task = Task.objects.get(pk=review.task)
        assert task.state == expected[Decision(seen.decision)]
        # One change of the task, however many clicked: its log has one line more.
        assert task.seq == (3 if seen.decision == Decision.REPLY else 2)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", range(5))
def test_approving_and_canceling_at_once(stranger: Keyed, turn: int) -> None:
    """In either order they agree in the end, and neither locks the other out."""
    review = waiting(stranger.caller)
    at_once(
        [
            lambda: review_decide(review_id=review.pk, decision=Decision.APPROVE, digest=review.digest),
            lambda: task_cancel(task_id=review.task, caller_id=stranger.caller.pk),
        ]
    )
    review.refresh_from_db()
    # A task that was approved first can still be canceled.
    assert Task.objects.get(pk=review.task).state == TaskState.CANCELED
    assert review.state in (Review.State.APPROVED, Review.State.VOID)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", range(5))
def test_approving_and_disabling_at_once(stranger: Keyed, turn: int) -> None:
    """Nothing runs after it: a worker asks once more whether the caller is let in."""
    review = waiting(stranger.caller)
    at_once(
        [
            lambda: review_decide(review_id=review.pk, decision=Decision.APPROVE, digest=review.digest),
            lambda: caller_set_enabled(caller=stranger.caller, enabled=False),
        ]
    )
    review.refresh_from_db()
    state = Task.objects.get(pk=review.task).state
    assert (review.state, state) in [
        (Review.State.APPROVED, TaskState.SUBMITTED),
        (Review.State.VOID, TaskState.REJECTED),
    ]


@pytest.mark.django_db(transaction=True)
def test_talk_that_races_a_decision_is_in_what_is_decided_or_after_it(stranger: Keyed) -> None:
    for _ in range(5):
        review = waiting(stranger.caller)
        words = {"messageId": "m2", "role": "ROLE_USER", "parts": [{"text": "and that"}]}
        decided, added = at_once(
            [
                partial(review_decide, review_id=review.pk, decision=Decision.APPROVE, digest=review.digest),
                partial(review_add, task=review.task, caller_id=stranger.caller.pk, message=words, text="and that"),
            ]
        )
        # Never both: an approval of what was shown before.
        assert isinstance(decided, Review) != added
        assert len(Review.objects.get(pk=review.pk).messages) == (2 if added else 1)


@pytest.mark.django_db
@pytest.mark.parametrize("decision", [Decision.REPLY, Decision.ASK])
@pytest.mark.parametrize("text", ["", "  \n"])
def test_a_reply_and_a_question_have_words(stranger: Keyed, decision: Decision, text: str) -> None:
    review = waiting(stranger.caller)
    with pytest.raises(ValidationError, match="Write the"):
        review_decide(review_id=review.pk, decision=decision, digest=review.digest, text=text)
    review.refresh_from_db()
    assert review.state == Review.State.PENDING


@pytest.mark.django_db
def test_what_a_receiver_refuses_leaves_nothing_behind(stranger: Keyed) -> None:
    """The task was overtaken: no grant, no observation, and the review is void."""
    review = waiting(stranger.caller)
    Task.objects.filter(pk=review.task).delete()
    with pytest.raises(ReviewVoidError, match="no longer exists"):
        review_decide(review_id=review.pk, decision=Decision.GRANT, digest=review.digest)
    assert not Grant.objects.filter(caller=stranger.caller).exists()
    assert not Observation.objects.exists()
    review.refresh_from_db()
    assert review.state == Review.State.VOID


@pytest.mark.django_db
def test_no_such_review() -> None:
    with pytest.raises(ReviewVoidError):
        review_decide(review_id=10**9, decision=Decision.APPROVE, digest="x")

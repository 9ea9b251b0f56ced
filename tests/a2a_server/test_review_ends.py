"""Reviews that end without the owner's decision: canceled tasks, revoked keys, disabled callers, the time limit."""

from datetime import timedelta

import pytest
from django.utils import timezone

from a2a_server.models import Task
from tests.conftest import Keyed
from tests.product import Api, question_of, state_of
from tests.reviewing import Decision, decide, review_of
from trust.errors import ReviewDecidedError, ReviewVoidError
from trust.models import CallerKey, Grant, Observation, Review
from trust.services import caller_set_enabled, grant_revoke, key_revoke, reviews_sweep
from volcanic.models import Notification

State = Review.State


def test_a_canceled_request_can_not_be_approved(strange: Api) -> None:
    """The task stays canceled, the review is void, nothing runs."""
    task = strange.send("Do it.")
    strange.result("CancelTask", {"id": task["id"]})
    assert (review_of(task).state, review_of(task).note) == (State.VOID, "The task was canceled.")
    with pytest.raises(ReviewVoidError):
        decide(task, Decision.APPROVE)
    assert state_of(strange.get(task["id"])) == "CANCELED"
    assert Observation.objects.count() == 0


def test_a_cancel_that_the_review_did_not_hear_of(strange: Api) -> None:
    """The process died between the two."""
    task = strange.send("Do it.")
    Task.objects.filter(pk=task["id"]).update(state="canceled")
    with pytest.raises(ReviewVoidError, match="canceled"):
        decide(task, Decision.GRANT)
    assert review_of(task).state == State.VOID
    assert (Observation.objects.count(), Grant.objects.filter(caller__name="stranger").count()) == (0, 0)


def test_a_revoked_key_voids_what_came_with_it(strange: Api, stranger: Keyed) -> None:
    """The review is void and the task rejected: who has the key is not let in any more."""
    task = strange.send("Do it.")
    key_revoke(key=CallerKey.objects.get(caller=stranger.caller))
    assert review_of(task).state == State.VOID
    with pytest.raises(ReviewVoidError):
        decide(task, Decision.APPROVE)
    assert Task.objects.get(pk=task["id"]).state == "rejected"


def test_a_disabled_caller_has_nothing_done(strange: Api, stranger: Keyed) -> None:
    """The review is void and the task rejected."""
    task = strange.send("Do it.")
    caller_set_enabled(caller=stranger.caller, enabled=False)
    assert review_of(task).state == State.VOID
    with pytest.raises(ReviewVoidError):
        decide(task, Decision.APPROVE)
    assert Task.objects.get(pk=task["id"]).state == "rejected"


def test_its_time_passes(strange: Api) -> None:
    task = strange.send("Do it.")
    other = strange.send("Do that.")
    decide(other, Decision.ASK, "What?")
    assert reviews_sweep() == (0, 0)
    later = timezone.now() + timedelta(days=6, hours=1)
    assert reviews_sweep(now=later) == (0, 1)
    assert reviews_sweep(now=later) == (0, 0)
    warning = Notification.objects.get(kind=Notification.Kind.EXPIRING)
    assert (warning.urgent, str(warning.task)) == (True, task["id"])
    assert reviews_sweep(now=timezone.now() + timedelta(days=7, seconds=1)) == (2, 0)
    for ended in (strange.get(task["id"]), strange.get(other["id"])):
        assert state_of(ended) == "REJECTED"
        assert "not decided in time" in question_of(ended)
    assert review_of(task).state == State.EXPIRED
    with pytest.raises(ReviewDecidedError, match="expired"):
        decide(task, Decision.APPROVE)


def test_revoking_can_stop_what_runs(api: Api, friend: Keyed) -> None:
    going = api.send("sleep: 600\nlate", at_once=True)
    api.wait(going["id"], "WORKING")
    assert grant_revoke(caller=friend.caller, slug="chat", stop=True)
    assert state_of(api.wait(going["id"], "CANCELED")) == "CANCELED"
    # At Act without the grant: shown to the owner.
    assert state_of(api.send("again")) == "AUTH_REQUIRED"

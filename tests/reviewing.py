"""The owner's part in tests: finds waiting reviews, and decides them as the console, the admin and the shell do."""

from typing import Any

from tests.waiting import wait_for
from trust.decisions import review_decide
from trust.models import Observation, Review
from volcanic.acting import acting_as

Decision = Observation.Decision


def review_of(task: dict[str, Any]) -> Review:
    """Returns the review of a task."""
    return Review.objects.get(task=task["id"])


def waiting_review_of(task: dict[str, Any]) -> Review:
    """Returns the review of a task as soon as the review waits for the owner."""
    return wait_for(lambda: Review.objects.filter(task=task["id"], state=Review.State.PENDING).first())


def decide(task: dict[str, Any], decision: Decision, text: str = "") -> Review:
    """Takes the owner's decision on the review in its present form."""
    review = review_of(task)
    with acting_as("owner olivia", "test-request"):
        return review_decide(review_id=review.pk, decision=decision, digest=review.digest, text=text)

"""The results of the owner's decisions in sentences, for the admin and the shell."""

from trust.models import Observation, Review

Decision = Observation.Decision


def outcome(review: Review, decision: Decision) -> str:
    """Returns a sentence about the result of a decision that was taken on `review`."""
    caller = review.caller.name
    return {
        Decision.APPROVE: "Approved: it is being done.",
        Decision.GRANT: f"Approved: it is being done, and {caller} may use {review.skill} from now on.",
        Decision.REPLY: f"Your reply went to {caller}.",
        Decision.ASK: f"Your question went to {caller}.",
        Decision.DECLINE: f"Declined: {caller} was told.",
    }[decision]

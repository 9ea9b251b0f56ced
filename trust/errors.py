"""Errors of decisions on reviews and drafts. Each message is for the owner, who has to look again."""


class ReviewError(Exception):
    """The decision was not taken."""


class ReviewDecidedError(ReviewError):
    """The review was decided before, or its time has passed."""


class ReviewChangedError(ReviewError):
    """The content that would run has changed since it was shown."""


class ReviewVoidError(ReviewError):
    """The review is void: the caller canceled its request, or is no longer let in."""


class DraftDecidedError(Exception):
    """The draft has changed since it was shown, or was decided before."""


class TaskOvertakenError(Exception):
    """Raised by a receiver of `review_decided`: the task no longer waits, so the decision must not stand."""

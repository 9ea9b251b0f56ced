"""Why a decision about a review was not taken. Each message is for the owner, who has to look again."""


class ReviewError(Exception):
    """The decision was not taken."""


class ReviewDecidedError(ReviewError):
    """Somebody was first, or time was."""


class ReviewChangedError(ReviewError):
    """What would run is no longer what was shown."""


class ReviewVoidError(ReviewError):
    """There is nothing left to decide: the caller took it back, or was shut out."""


class DraftDecidedError(Exception):
    """A draft is not what was shown any more, or decided."""


class TaskOvertakenError(Exception):
    """Raised by whoever receives `review_decided`: the task waits no longer, so the decision must not stand."""

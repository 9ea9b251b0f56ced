"""What can go wrong with a caller's request, in our own words. `wire.py` gives each its A2A error."""


class RequestError(Exception):
    """A request that the caller has to change. Its text says how."""


class InvalidParams(RequestError):
    """A parameter is wrong. The text names it."""


class TaskNotFound(RequestError):
    """There is no such task for this caller: unknown and another's look the same."""

    def __init__(self, _task_id: str = "") -> None:
        super().__init__("Task not found")


class NotSupported(RequestError):
    """The task or context is in a state in which this can't be done. The text says when it can."""


class NotCancelable(RequestError):
    """The task has ended already."""


class ContentTypeNotSupported(RequestError):
    """A part's media type that the assistant does not take. The text names those it takes."""


class PushNotSupported(RequestError):
    """The assistant sends no push notifications."""

    def __init__(self) -> None:
        super().__init__("Push notifications are not supported")


class QuotaExceeded(RequestError):
    """The caller has as much as it may. The text says of what, how much, and how much is allowed."""

    def __init__(self, quota: str, *, limit: int, used: int, text: str) -> None:
        super().__init__(f"Quota {quota} exceeded: {text}")
        self.quota = quota
        self.limit = limit
        self.used = used

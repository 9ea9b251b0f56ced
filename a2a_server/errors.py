"""Errors in a caller's request. `wire.py` maps each to its A2A error. The texts are sent to the caller."""


class RequestError(Exception):
    """A request that the caller has to change. The text says how."""


class InvalidParams(RequestError):
    """A parameter is wrong. The text names it."""


class TaskNotFound(RequestError):
    """The caller has no such task. An unknown task and another caller's task give the same error."""

    def __init__(self, _task_id: str = "") -> None:
        super().__init__("Task not found")


class NotSupported(RequestError):
    """The operation is impossible in the present state of the task or context. The text says when it is possible."""


class NotCancelable(RequestError):
    """The task has ended already."""


class ContentTypeNotSupported(RequestError):
    """The assistant does not take a part's media type. The text names the types that it takes."""


class PushNotSupported(RequestError):
    """The assistant sends no push notifications."""

    def __init__(self) -> None:
        super().__init__("Push notifications are not supported")


class QuotaExceeded(RequestError):
    """The caller has used up a quota. The text names the quota, its limit and the amount used."""

    def __init__(self, quota: str, *, limit: int, used: int, text: str) -> None:
        super().__init__(f"Quota {quota} exceeded: {text}")
        self.quota = quota
        self.limit = limit
        self.used = used

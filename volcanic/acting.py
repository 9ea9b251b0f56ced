"""Current actor for the audit: set where a request, a command or a job enters, read where an entry is written."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Actor:
    """An actor: a name such as `owner olivia`, `shell root` or `caller friend`, and the id of the actor's request.

    The request id of a caller is the id of the caller's task.
    """

    name: str = SYSTEM
    request_id: str = ""


_actor: ContextVar[Actor] = ContextVar("actor", default=Actor())  # noqa: B039  it is frozen


def current() -> Actor:
    """Returns the actor of this thread or asyncio task. The default is the system itself."""
    return _actor.get()


@contextmanager
def acting_as(name: str, request_id: str = "") -> Iterator[None]:
    """Sets the actor within the block. Cuts `name` to 150 characters and `request_id` to 64."""
    token = _actor.set(Actor(name[:150], request_id[:64]))
    try:
        yield
    finally:
        _actor.reset(token)

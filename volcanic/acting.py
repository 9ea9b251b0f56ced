"""Who is acting, for the audit: set where somebody comes in, read where something is written down."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who does something: `owner olivia`, `shell root`, `caller friend`; and in which request: of a caller's,
    the task."""

    name: str = SYSTEM
    request_id: str = ""


_actor: ContextVar[Actor] = ContextVar("actor", default=Actor())  # noqa: B039  it is frozen


def current() -> Actor:
    """Returns who is acting in this thread or task: the system itself where nobody else is."""
    return _actor.get()


@contextmanager
def acting_as(name: str, request_id: str = "") -> Iterator[None]:
    """Has `name` act for the time of the block."""
    token = _actor.set(Actor(name[:150], request_id[:64]))
    try:
        yield
    finally:
        _actor.reset(token)

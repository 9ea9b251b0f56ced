"""Waiting for something that happens in another process or thread."""

import time
from collections.abc import Callable
from typing import Literal, TypeVar

T = TypeVar("T")


def wait_for(predicate: Callable[[], T | Literal[False] | None], timeout: float = 30.0) -> T:
    """Asks again and again until the predicate is true, and returns what it said. Fails after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (said := predicate()):
        assert time.monotonic() < deadline, f"not within {timeout} s: {predicate}"
        time.sleep(0.02)
    return said

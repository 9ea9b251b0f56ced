"""Waiting for conditions that another process or thread brings about."""

import time
from collections.abc import Callable
from typing import Literal, TypeVar

T = TypeVar("T")


def wait_for(predicate: Callable[[], T | Literal[False] | None], timeout: float = 30.0) -> T:
    """Calls the predicate until its value is true, and returns that value. Fails after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (said := predicate()):
        assert time.monotonic() < deadline, f"not within {timeout} s: {predicate}"
        time.sleep(0.02)
    return said

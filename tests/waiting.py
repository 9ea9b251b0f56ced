"""Waiting for something that happens in another process or thread."""

import time
from collections.abc import Callable
from typing import Literal, TypeVar

T = TypeVar("T")

PATIENCE = 240.0
"""Seconds that tests wait for what has to come. Only ever over when something is wrong, so that a slow machine may
take its time; where a test is about the product's own time limit, it says another number."""


def wait_for(predicate: Callable[[], T | Literal[False] | None], timeout: float = PATIENCE) -> T:
    """Asks again and again until the predicate is true, and returns what it said. Fails after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (said := predicate()):
        assert time.monotonic() < deadline, f"not within {timeout} s: {predicate}"
        time.sleep(0.02)
    return said

"""Waiting for conditions that another process or thread brings about."""

import time
from collections.abc import Callable
from typing import Literal, TypeVar

T = TypeVar("T")

PATIENCE = 240.0
"""Seconds that tests wait for what has to come. Only ever over when something is wrong, so that a slow machine may
take its time; where a test is about the product's own time limit, it says another number."""


def wait_for(predicate: Callable[[], T | Literal[False] | None], timeout: float = PATIENCE) -> T:
    """Calls the predicate until its value is true, and returns that value. Fails after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (said := predicate()):
        assert time.monotonic() < deadline, f"not within {timeout} s: {predicate}"
        time.sleep(0.02)
    return said

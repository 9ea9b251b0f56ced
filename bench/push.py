"""Measurement of webhooks: checks that each task's status changes arrive in order, and measures their delay."""

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from http.client import HTTPConnection
from itertools import groupby
from typing import Any

from bench.load import Result, percentile
from bench.processes import BenchError, program_on_port
from bench.product import VAR
from bench.receiver import HOST

# States of an echo task. The webhook gets a notification of each.
_STATES = ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]
_PATIENCE = 60.0  # seconds without a new notification after which missing ones are given up
_POLL_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class Delivered:
    """The result for webhooks, measured after the warm-up; times in milliseconds.

    `rate` counts until the last notification arrived. `count` includes the warm-up.
    """

    count: int
    rate: float
    delay_median_ms: float
    delay_p99_ms: float


@contextmanager
def receiver() -> Iterator[int]:
    """Runs a receiver of webhooks during the block. Yields its port."""
    with program_on_port("receiver", "-m", "bench.receiver", log=VAR / "receiver.log") as (_, port):
        yield port


def url(port: int) -> str:
    """Returns the receiver's URL for notifications."""
    return f"http://{HOST}:{port}/"


def wait_and_check(port: int, result: Result) -> Delivered:
    """Waits for all notifications of the load's tasks at the receiver on `port`, and returns the measured values.

    Raises BenchError for a missing notification or a wrong order.
    """
    _wait(port, len(result.task_ids) * len(_STATES))
    arrivals = _ask(port, "/arrivals")
    _check(arrivals, result.task_ids)
    counted = [(changed, at) for _, _, changed, at in arrivals if at >= result.began_at]
    delays = sorted(at - datetime.fromisoformat(changed).timestamp() for changed, at in counted)
    if not delays:
        raise BenchError("no notification came within the time")
    return Delivered(
        count=len(arrivals),
        rate=len(counted) / (max(at for _, at in counted) - result.began_at),
        delay_median_ms=percentile(delays, 0.5),
        delay_p99_ms=percentile(delays, 0.99),
    )


def _wait(port: int, owed: int) -> None:
    """Waits until `owed` notifications came, or none came for _PATIENCE seconds; `_check` then reports missing ones."""
    count, since = -1, time.monotonic()
    while count < owed and time.monotonic() - since < _PATIENCE:
        if (now := _ask(port, "/")) != count:
            count, since = now, time.monotonic()
        time.sleep(_POLL_SECONDS)


def _check(arrivals: list[Any], task_ids: list[str]) -> None:
    """Raises BenchError for missing or unordered states. Duplicates are allowed, since delivery is at least once."""
    told = defaultdict(list)
    for task_id, state, changed, _ in arrivals:
        told[task_id].append((state, changed))
    for task_id in task_ids:
        states = [state for (state, _), _ in groupby(told.pop(task_id, []))]
        if states != _STATES:
            raise BenchError(f"the webhook of task {task_id} was told {states}, not {_STATES}")
    if told:
        raise BenchError(f"the webhook was told of tasks that nobody sent: {sorted(told)[:10]}")


def _ask(port: int, path: str) -> Any:
    connection = HTTPConnection(HOST, port, timeout=_PATIENCE)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()

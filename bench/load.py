"""Load generator: N keep-alive connections that each send one request after the other and check every answer.

The load generator is a separate program (`python -m bench.load`, with an `Order` in JSON on stdin and a `Result` in
JSON on stdout), so that it shares no interpreter with the measured server. It is the same for every server. After a
wrong answer, it exits with code 1.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass, field

import uvloop

from bench.calls import Call, WrongAnswerError, get_task, make_call
from bench.client import Connection

DRAIN_SECONDS = 180.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Order:
    """The order for a load. `task_ids` are the tasks for GetTask, `webhook` is the URL for notifications of `push`."""

    port: int
    key: str
    measure: str
    seconds: float
    warm_up: float
    connections: int
    task_ids: list[str] = field(default_factory=list)
    total: int = 0
    webhook: str = ""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a load, measured after the warm-up; times in milliseconds.

    `work_rate` counts until the last task was done. `requests` includes the warm-up, which ended at `began_at` (wall
    clock). `task_ids` are all tasks that `push` sent.
    """

    rate: float
    count: int
    median_ms: float
    p99_ms: float
    first_median_ms: float
    first_p99_ms: float
    work_rate: float
    client_cpu: float
    requests: int
    began_at: float
    task_ids: list[str]


class Load:
    """One run of the load."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._number = 0
        self._sent = 0
        self._began = self._began_at = 0.0
        self._times: list[tuple[float, float]] = []  # from the request to its first event, and to its end
        self._last: list[str] = []
        self._pushed: list[str] = []

    async def run(self) -> Result:
        """Loads the server for the ordered time. Raises WrongAnswerError at the first wrong answer."""
        order = self._order
        started = time.perf_counter()
        self._began = started + order.warm_up
        self._began_at = time.time() + order.warm_up
        end = self._began + order.seconds
        cpu = time.process_time()
        async with asyncio.TaskGroup() as group:
            for _ in range(order.connections):
                group.create_task(self._keep_asking(end))
        cpu = (time.process_time() - cpu) / (time.perf_counter() - started)
        if self._last:
            await self._drain()
        work_rate = self._sent / (time.perf_counter() - started) if self._last else 0.0
        return self._result(work_rate, cpu)

    def _next_call(self) -> Call:
        self._number += 1
        order = self._order
        return make_call(order.measure, self._number, order.task_ids, order.total, order.webhook)

    async def _keep_asking(self, end: float) -> None:
        connection = await Connection.open(self._order.port, self._order.key)
        last = ""
        while (now := time.perf_counter()) < end:
            call = self._next_call()
            answer = await connection.ask(call.body)
            last = call.check(answer)
            self._sent += 1
            if self._order.measure == "push":
                self._pushed.append(last)
            done = time.perf_counter()
            if now >= self._began and done <= end:
                self._times.append((answer.first_at - now, done - now))
        if self._order.measure == "immediate" and last:
            self._last.append(last)
        connection.close()

    async def _drain(self) -> None:
        """Waits until the last task of each connection is done. Raises WrongAnswerError after DRAIN_SECONDS."""
        connection = await Connection.open(self._order.port, self._order.key)
        give_up = time.perf_counter() + DRAIN_SECONDS
        for task_id in self._last:
            while not (call := get_task(1, task_id)).is_done(await connection.ask(call.body)):
                if time.perf_counter() > give_up:
                    raise WrongAnswerError(f"task {task_id} was accepted, but not done {DRAIN_SECONDS:.0f} s later")
                await asyncio.sleep(_POLL_SECONDS)
        connection.close()

    def _result(self, work_rate: float, cpu: float) -> Result:
        if not self._times:
            raise WrongAnswerError("no answer came within the time")
        firsts = sorted(first for first, _ in self._times)
        wholes = sorted(whole for _, whole in self._times)
        return Result(
            rate=len(wholes) / self._order.seconds,
            count=len(wholes),
            median_ms=percentile(wholes, 0.5),
            p99_ms=percentile(wholes, 0.99),
            first_median_ms=percentile(firsts, 0.5),
            first_p99_ms=percentile(firsts, 0.99),
            work_rate=work_rate,
            client_cpu=cpu,
            requests=self._sent,
            began_at=self._began_at,
            task_ids=self._pushed,
        )


def percentile(ordered: list[float], share: float) -> float:
    """Returns the percentile `share` (0 to 1) of the sorted times, converted from seconds to milliseconds."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000


def main() -> int:
    """Returns the exit code."""
    order = Order(**json.load(sys.stdin))
    try:
        result = uvloop.run(Load(order).run())
    except* (WrongAnswerError, OSError) as errors:
        sys.exit(_first(errors))
    json.dump(asdict(result), sys.stdout)
    return 0


def _first(errors: BaseExceptionGroup[BaseException]) -> str:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else str(first)


if __name__ == "__main__":
    sys.exit(main())

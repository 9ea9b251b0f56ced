"""Measures one running server with each load in turn."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException

from bench.calls import WrongAnswerError, make_call
from bench.client import PATH, Answer
from bench.load import DRAIN_SECONDS, Order, Result
from bench.processes import PROJECT, BenchError, cpu_seconds, memory_of
from bench.product import LISTED_TASKS, Keys
from volcanic.supervisor.spec import Spec

MEASURES = ("send", "immediate", "get", "stream", "list")
Measured = dict[str, float]
_PATIENCE = 60.0  # seconds until a server that listens gives its first right answer: its worker may still start
_GET_TASKS = 20


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to measure."""

    seconds: float
    warm_up: float
    connections: int
    measures: tuple[str, ...] = ()


def measure(
    server: str,
    port: int,
    pids: Mapping[str, int],
    keys: Keys,
    options: Options,
    *,
    prepare: Callable[[], None] = lambda: None,
    lists: bool = True,
) -> Measured:
    """Returns what was measured, by name. `prepare` is called after the first answer; `lists` is whether there are
    LISTED_TASKS tasks to list. Raises BenchError for any wrong answer.
    """
    first = [_first_answer(port, keys.sender)]
    prepare()
    task_ids = first + [_answer(port, keys.sender, number) for number in range(1, _GET_TASKS)]
    found: Measured = {}
    for name in options.measures or MEASURES:
        if name == "list" and not lists:
            continue
        order = Order(
            port=port,
            key=keys.lister if name == "list" else keys.sender,
            measure=name,
            seconds=options.seconds,
            warm_up=options.warm_up,
            connections=options.connections,
            task_ids=task_ids,
            total=LISTED_TASKS,
        )
        cpu = cpu_seconds(pids)
        result = _load(server, order)
        cpu_ms = (cpu_seconds(pids) - cpu) / result.requests * 1000
        print(
            f"{server:>12} {name:<9} {result.rate:8.1f}/s  median {result.median_ms:7.1f} ms  "
            f"processors {cpu_ms:6.2f} ms each, load generator {result.client_cpu:4.0%} of a core",
            flush=True,
        )
        found |= _values(name, result) | {f"{name}_cpu_ms": cpu_ms}
    for name, (rss, pss) in memory_of(pids).items():
        found |= {f"{name}_rss_mb": rss, f"{name}_pss_mb": pss}
    return found


def _values(name: str, result: Result) -> Measured:
    values = {
        f"{name}_per_second": result.rate,
        f"{name}_median_ms": result.median_ms,
        f"{name}_p99_ms": result.p99_ms,
        f"{name}_client_cpu": result.client_cpu,
    }
    if name == "immediate":
        values["work_per_second"] = result.work_rate
    if name == "stream":
        values |= {"first_event_median_ms": result.first_median_ms, "first_event_p99_ms": result.first_p99_ms}
    return values


def _load(server: str, order: Order) -> Result:
    """Runs the load in a process of its own."""
    spec = Spec(name="load", argv=(sys.executable, "-m", "bench.load"), cwd=PROJECT)
    done = subprocess.run(
        spec.command(),
        input=json.dumps(asdict(order)),
        capture_output=True,
        text=True,
        timeout=order.warm_up + order.seconds + DRAIN_SECONDS + 60,
        check=False,
        **spec.options(),
    )
    if done.returncode != 0:
        raise BenchError(f"{server}, {order.measure}: {done.stderr.strip()}")
    return Result(**json.loads(done.stdout))


def _first_answer(port: int, key: str) -> str:
    give_up = time.monotonic() + _PATIENCE
    while True:
        try:
            return _answer(port, key, 0)
        except (OSError, HTTPException) as error:
            if time.monotonic() > give_up:
                raise BenchError(f"the server gives no answer: {error}") from error
            time.sleep(0.1)


def _answer(port: int, key: str, number: int) -> str:
    """Sends one blocking message and returns the id of its completed task."""
    call = make_call("send", number, [], 0)
    headers = {"X-API-Key": key, "A2A-Version": "1.0", "Content-Type": "application/json"}
    connection = HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
    try:
        connection.request("POST", PATH, body=call.body, headers=headers)
        response = connection.getresponse()
        return call.check(Answer(response.status, response.read(), 0.0))
    except WrongAnswerError as error:
        raise BenchError(str(error)) from error
    finally:
        connection.close()

"""Measurement of one running server with each load in turn."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Container, Mapping
from dataclasses import asdict, dataclass, replace
from http.client import HTTPConnection, HTTPException

from bench import push
from bench.calls import WrongAnswerError, make_call
from bench.client import PATH, Answer
from bench.load import DRAIN_SECONDS, Order, Result
from bench.processes import PROJECT, BenchError, cpu_seconds, memory_of
from bench.product import LISTED_TASKS, Keys
from volcanic.processes.supervisor.spec import Spec

MEASURES = ("send", "immediate", "get", "stream", "list", "notify", "push")
Measured = dict[str, float]
_PATIENCE = 60.0  # seconds until a server gives its first right answer, since its worker may still start
_GET_TASKS = 20


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a measurement."""

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
    without: Container[str] = (),
) -> Measured:
    """Returns the measured values by name. Raises BenchError for any wrong answer.

    `prepare` is called after the first answer. The measures in `without` are skipped.
    """
    first = [_first_answer(port, keys.sender)]
    prepare()
    task_ids = first + [_answer(port, keys.sender, number) for number in range(1, _GET_TASKS)]
    found: Measured = {}
    for name in options.measures or MEASURES:
        if name in without:
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
        found |= _measure_push(server, order, pids) if name == "push" else _measure_one(server, order, pids)
    for name, (rss, pss) in memory_of(pids).items():
        found |= {f"{name}_rss_mb": rss, f"{name}_pss_mb": pss}
    return found


def _measure_one(server: str, order: Order, pids: Mapping[str, int]) -> Measured:
    cpu = cpu_seconds(pids)
    result = _load(server, order)
    cpu_ms = (cpu_seconds(pids) - cpu) / result.requests * 1000
    _show(server, order.measure, result.rate, f"median {result.median_ms:7.1f} ms", cpu_ms, result.client_cpu)
    return _values(order.measure, result) | {f"{order.measure}_cpu_ms": cpu_ms}


def _measure_push(server: str, order: Order, pids: Mapping[str, int]) -> Measured:
    """Measures webhooks: rate and processor time refer to notifications, not to requests."""
    with push.receiver() as port:
        cpu = cpu_seconds(pids)
        result = _load(server, replace(order, webhook=push.url(port)))
        found = push.wait_and_check(port, result)
        cpu_ms = (cpu_seconds(pids) - cpu) / found.count * 1000
    _show(server, order.measure, found.rate, f"delay {found.delay_median_ms:8.1f} ms", cpu_ms, result.client_cpu)
    return {
        "push_per_second": found.rate,
        "push_delay_median_ms": found.delay_median_ms,
        "push_delay_p99_ms": found.delay_p99_ms,
        "push_cpu_ms": cpu_ms,
    }


def _show(server: str, measure: str, rate: float, time_taken: str, cpu_ms: float, client_cpu: float) -> None:
    print(
        f"{server:>12} {measure:<9} {rate:8.1f}/s  {time_taken}  "
        f"processors {cpu_ms:6.2f} ms each, load generator {client_cpu:4.0%} of a core",
        flush=True,
    )


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

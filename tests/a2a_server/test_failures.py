"""Failures: killed and paused processes, as a caller sees them. Each test kills parts of its own product."""

import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

import httpx
import pytest

from a2a_server.models import Task, TaskState
from a2a_server.services import tasks_sweep
from tests.conftest import Keyed
from tests.product import Api, Product, message, question_of, sse, state_of, text_of
from tests.waiting import PATIENCE, wait_for


def test_kill_9_of_the_worker(api: Api, product: Product) -> None:
    """The task fails when its lease has passed, on the next read, with "server restarted".

    It is not run again: what killed one worker would kill the next.
    """
    task = api.send("sleep: 600", at_once=True)
    api.wait(task["id"], "WORKING")
    waiting = api.send("ask: still there?")
    product.signal("worker", signal.SIGKILL)
    failed = api.wait(task["id"], "FAILED")
    assert question_of(failed) == "server restarted"
    assert Task.objects.get(pk=task["id"]).attempt == 1
    assert state_of(api.get(waiting["id"])) == "INPUT_REQUIRED"
    product.start_worker()
    answered = api.send("yes", taskId=waiting["id"])
    assert text_of(answered) == "You said: yes"


def test_a_task_submitted_without_a_worker_runs_when_there_is_one(api: Api, product: Product) -> None:
    product.signal("worker", signal.SIGKILL)
    task = api.send("hello", at_once=True)
    assert state_of(task) == "SUBMITTED"
    product.start_worker()
    assert text_of(api.wait(task["id"], "COMPLETED")) == "hello"


def test_a_worker_told_to_stop_ends_what_does_not_end(api: Api, product: Product) -> None:
    """SIGTERM; after its grace the run is failed by the worker itself, and the worker is gone."""
    task = api.send("sleep: 600", at_once=True)
    api.wait(task["id"], "WORKING")
    product.signal("worker", signal.SIGTERM)
    wait_for(lambda: not product.runs("worker"))
    # Not read by the API before: that would fail it too, once the lease has passed.
    assert Task.objects.get(pk=task["id"]).state == TaskState.FAILED
    assert question_of(api.get(task["id"])) == "server restarted"


def test_kill_9_of_the_web_process_in_mid_stream(api: Api, product: Product, friend: Keyed) -> None:
    """The stream breaks, the run goes on, and a new stream begins with the task as it is."""
    params = {"message": message("stream: 30000")}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}
    with (
        httpx.Client(base_url=product.url, headers={"X-API-Key": friend.key}, timeout=PATIENCE) as http,
        suppress(httpx.TransportError),
        http.stream("POST", "/a2a", json=body) as response,
    ):
        events = sse(response)
        task = next(events)["result"]["task"]
        product.signal("web", signal.SIGKILL)
        list(events)
    product.start_web()
    with api.stream("SubscribeToTask", {"id": task["id"]}) as follow:
        snapshot = next(follow)["task"]
        update = next(event["artifactUpdate"]["artifact"] for event in follow if "artifactUpdate" in event)
        api.result("CancelTask", {"id": task["id"]})
        last = list(follow)[-1]
    assert snapshot["id"] == task["id"]
    # Neither a gap nor anything twice.
    numbers = [int(number) for number in re.findall(r"\d+", text_of(snapshot) + update["parts"][0]["text"])]
    assert numbers == list(range(1, len(numbers) + 1))
    assert state_of(last["statusUpdate"]) == "CANCELED"


def test_a_paused_worker_wakes_up_too_late(api: Api, product: Product) -> None:
    """SIGSTOP past the lease, then SIGCONT: what it had in hand is not written over the failure."""
    task = api.send("sleep: 1\ntoo late", at_once=True)
    api.wait(task["id"], "WORKING")
    product.signal("worker", signal.SIGSTOP)
    api.wait(task["id"], "FAILED")
    product.signal("worker", signal.SIGCONT)
    product.lets_go_of(task["id"])
    assert state_of(api.send("hello")) == "COMPLETED"
    failed = api.get(task["id"])
    assert state_of(failed) == "FAILED"
    assert "artifacts" not in failed


def test_a_backlog_is_worked_off_without_pauses(api: Api) -> None:
    """More messages than the worker prefetches: none waits for a timer of the worker's loop while threads are idle."""
    tasks = [api.send("hello", at_once=True)["id"] for _ in range(150)]
    wait_for(lambda: not Task.objects.exclude(state=TaskState.COMPLETED).exists())
    assert Task.objects.filter(pk__in=tasks, state=TaskState.COMPLETED).count() == 150
    # The times between two ends tell: a turn is some milliseconds, a stall five seconds and more, and there would be
    # more than five; a busy machine may lose a moment now and then.
    ends = list(Task.objects.order_by("status_at").values_list("status_at", flat=True))
    assert sorted((later - earlier).total_seconds() for earlier, later in pairwise(ends))[-6] < 4


@pytest.fixture
def without_redis(transactional_db: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The product with a broker that is not there."""
    folder = tmp_path_factory.mktemp("no-redis")
    broken = Product(folder, REDIS_URL=f"unix://{folder}/nothing.sock?db=0")
    try:
        broken.start_web()
        yield broken
    finally:
        broken.stop()


def test_redis_gone_at_submit_time(
    without_redis: Product, product: Product, friend: Keyed, transactional_db: None
) -> None:
    """Wake-ups may be lost, all of them. The task is kept and runs when a sweep finds it; a blocking caller waits
    by reading the database."""
    product.revive()
    with without_redis.api(friend.key) as api:
        kept = api.send("hello", at_once=True)
        assert state_of(kept) == "SUBMITTED"
        Task.objects.filter(pk=kept["id"]).update(enqueued_at="2000-01-01T00:00:00Z")
        assert tasks_sweep() == (0, 1)  # from a process whose Redis is there, as beat's is again by then
        assert text_of(api.wait(kept["id"], "COMPLETED")) == "hello"
        assert Task.objects.get(pk=kept["id"]).state == TaskState.COMPLETED
        parked = api.send("ask: well?", at_once=True)
        Task.objects.filter(pk=parked["id"]).update(enqueued_at="2000-01-01T00:00:00Z")
        tasks_sweep()
        api.wait(parked["id"], "INPUT_REQUIRED")
        with api.stream("SubscribeToTask", {"id": parked["id"]}) as events:
            assert next(events)["task"]["id"] == parked["id"]
            api.result("CancelTask", {"id": parked["id"]})
            assert state_of(list(events)[-1]["statusUpdate"]) == "CANCELED"

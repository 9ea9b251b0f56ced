"""The services themselves: what they cost, and what a worker presumed dead can't do."""

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries, Settings

from a2a_server.errors import NotCancelable, NotSupported, TaskNotFound
from a2a_server.models import RUNNING, TERMINAL, Task, TaskEvent, TaskState
from a2a_server.runs.dispatch import task_run
from a2a_server.runs.leases import LEASES
from a2a_server.services import (
    ArtifactUpdate,
    artifact_write,
    run_finish,
    run_uses,
    task_cancel,
    task_claim,
    task_expire,
    task_read,
    task_settle,
    task_submit,
    tasks_sweep,
)
from a2a_server.submission import Submission
from tests.conftest import Keyed
from tests.waiting import wait_for
from trust.keys import key_digest
from trust.models import CHAT
from trust.selectors import caller_by_key_digest
from trust.services import grant_revoke
from volcanic.aio.db import run_db
from volcanic.models import Turn
from volcanic.runtime import current
from volcanic.runtime.base import Outcome, TurnState
from volcanic.runtime.echo import EchoRunner

Submit = Callable[..., uuid.UUID]


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the tasks whose Celery message was sent. Nothing is really sent."""
    sent: list[str] = []
    monkeypatch.setattr("a2a_server.services.transitions.publish", lambda _task, task_id: sent.append(task_id))
    return sent


@pytest.fixture
def submission(friend: Keyed) -> Callable[..., Submission]:
    """Makes submissions of the friend's."""

    def make(text: str = "hi", **members: Any) -> Submission:
        values: dict[str, Any] = {
            "caller_id": friend.caller.id,
            "caller_name": friend.caller.name,
            "workspace_id": friend.caller.workspace_id,
            "message": {"role": "ROLE_USER", "messageId": str(uuid.uuid4()), "parts": [{"text": text}]},
            "digest": uuid.uuid4().hex,
            "task_id": uuid.uuid4(),
        }
        return Submission(**values | members)

    return make


@pytest.fixture
def submit(submission: Callable[..., Submission], published: list[str]) -> Submit:
    """Submits a message of the friend's and returns the task's id."""
    return lambda *args, **members: task_submit(submission=submission(*args, **members)).task_id


@pytest.fixture
def echo(settings: Settings) -> Iterator[None]:
    """Turns are run by the echo runner, in this process."""
    settings.RUNNER = "volcanic.runtime.echo.EchoRunner"
    current.runner.cache_clear()
    assert isinstance(current.runner(), EchoRunner)
    yield
    current.runner.cache_clear()


def test_what_a_read_costs(
    friend: Keyed, submit: Submit, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """GetTask: at most two statements, authentication included."""
    task_id = submit()
    with django_assert_max_num_queries(2):
        caller = caller_by_key_digest(key_digest(friend.key))
        assert caller is not None
        task_read(task_id=task_id, caller_id=caller.id)


def test_what_a_submit_costs(
    friend: Keyed,
    submission: Callable[..., Submission],
    published: list[str],
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    """A new task: at most four statements, authentication included."""
    wanted = submission()
    with django_assert_max_num_queries(4):
        caller_by_key_digest(key_digest(friend.key))
        task_submit(submission=wanted)


def test_what_a_message_to_the_owner_costs(
    stranger: Keyed, submission: Callable[..., Submission], django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """At most three statements, authentication included: who is calling, where it stands, all that its answer is."""
    wanted = replace(submission(), caller_id=stranger.caller.pk, caller_name="stranger", skill="notify-user")
    with django_assert_max_num_queries(3):
        caller_by_key_digest(key_digest(stranger.key))
        submitted = task_submit(submission=wanted)
    assert submitted.view is not None
    stored = task_read(task_id=submitted.task_id, caller_id=stranger.caller.pk)
    assert json.loads(submitted.view.to_json()) == json.loads(stored.to_json())


@pytest.mark.django_db(transaction=True)
def test_what_an_echo_turn_costs(
    echo: None, submit: Submit, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    """A whole turn in the worker, where nothing was said before and where something was: at most six statements."""
    for _ in range(2):
        task_id = submit("hello", context_id="same")
        with django_assert_max_num_queries(6):
            task_run(task_id=task_id)
        assert Task.objects.get(pk=task_id).state == TaskState.COMPLETED


def test_the_message_goes_out_after_commit(
    submission: Callable[..., Submission],
    published: list[str],
    django_capture_on_commit_callbacks: Any,
) -> None:
    """A worker never looks for a row that is not there yet."""
    with django_capture_on_commit_callbacks() as callbacks:
        task_id = task_submit(submission=submission()).task_id
        assert published == []
    for callback in callbacks:
        callback()
    assert published == [str(task_id)]


def test_one_worker_gets_a_task(submit: Submit) -> None:
    """A message delivered twice is run once."""
    task_id = submit()
    run = task_claim(task_id=task_id, worker="one")
    assert run is not None
    assert (run.attempt, run.grants, run.message["parts"]) == (1, {"chat": None}, [{"text": "hi"}])
    assert task_claim(task_id=task_id, worker="two") is None
    assert task_claim(task_id=uuid.uuid4(), worker="two") is None


def test_a_worker_presumed_dead_writes_nothing_more(submit: Submit, friend: Keyed) -> None:
    """Neither artifact nor state nor lease, in any state that its successor left."""
    task_id = submit()
    late = task_claim(task_id=task_id, worker="late")
    assert late is not None
    with time_machine.travel(timezone.now() + timedelta(hours=1)):
        assert task_read(task_id=task_id, caller_id=friend.caller.id).state == TaskState.FAILED
    before = Task.objects.filter(pk=task_id).values().get(), TaskEvent.objects.filter(task_id=task_id).count()
    update = ArtifactUpdate(artifact={"artifactId": "response", "parts": []})
    outcome = Outcome(state=TurnState.COMPLETED, text="late")
    assert not artifact_write(run=late, update=update)
    assert not run_uses(run=late, pending_report="Tools used: bash.")
    assert not run_finish(run=late, prompt="p", outcome=outcome, text="", update=update)
    assert not task_settle(run=late, state=TaskState.COMPLETED)
    assert not Turn.objects.exists()
    LEASES.renew([(task_id, late.attempt)])
    assert LEASES.lost([(task_id, late.attempt)]) == {(task_id, late.attempt)}
    assert before == (
        Task.objects.filter(pk=task_id).values().get(),
        TaskEvent.objects.filter(task_id=task_id).count(),
    )


def test_an_old_attempt_can_not_touch_a_new_one(submit: Submit, submission: Callable[..., Submission]) -> None:
    """The attempt number fences, even when the state is the same again."""
    task_id = submit()
    old = task_claim(task_id=task_id, worker="old")
    assert old is not None
    assert task_settle(run=old, state=TaskState.INPUT_REQUIRED, text="well?")
    task_submit(submission=submission(task_id=task_id, continues=True))
    new = task_claim(task_id=task_id, worker="new")
    assert new is not None
    assert new.attempt == 2
    assert not task_settle(run=old, state=TaskState.FAILED, text="late")
    assert not artifact_write(run=old, update=ArtifactUpdate(artifact={"artifactId": "response", "parts": []}))
    assert task_settle(run=new, state=TaskState.COMPLETED)


def test_a_dead_workers_task_fails_on_read_and_by_sweep(submit: Submit, friend: Keyed, published: list[str]) -> None:
    """It says "server restarted", with an event; an input-required task holds no lease and stays."""
    read, swept, asked = submit(), submit(), submit()
    run = None
    for task_id in (read, swept, asked):
        run = task_claim(task_id=task_id, worker="gone")
    assert run is not None
    assert task_settle(run=run, state=TaskState.INPUT_REQUIRED, text="well?")
    assert not task_expire(task_id=read)
    with time_machine.travel(timezone.now() + timedelta(hours=1)):
        seen = task_read(task_id=read, caller_id=friend.caller.id)
        assert tasks_sweep() == (1, 0)
        assert tasks_sweep() == (0, 0)
    assert seen.state == TaskState.FAILED
    assert json.loads(seen.status_message or "")["parts"] == [{"text": "server restarted"}]
    for task_id in (read, swept):
        last = TaskEvent.objects.filter(task_id=task_id).last()
        assert last is not None
        assert last.payload["statusUpdate"]["status"]["state"] == "TASK_STATE_FAILED"
    assert Task.objects.get(pk=asked).state == TaskState.INPUT_REQUIRED


def test_a_lost_message_is_sent_again(submit: Submit, published: list[str]) -> None:
    """After five seconds, and not at every sweep after that."""
    task_id = submit()
    assert tasks_sweep() == (0, 0)
    with time_machine.travel(timezone.now() + timedelta(seconds=6)):
        assert tasks_sweep() == (0, 1)
        assert tasks_sweep() == (0, 0)
    assert published == [str(task_id)]


@pytest.mark.parametrize("state", [*TERMINAL])
def test_terminal_states_absorb(submit: Submit, friend: Keyed, state: TaskState) -> None:
    """Nothing leads out of a terminal state."""
    task_id = submit()
    run = task_claim(task_id=task_id, worker="w")
    assert run is not None
    if state is TaskState.CANCELED:
        task_cancel(task_id=task_id, caller_id=friend.caller.id)
    else:
        assert task_settle(run=run, state=state)
    for other in TaskState:
        if other not in (*RUNNING, TaskState.CANCELED):
            assert not task_settle(run=run, state=other)
    with pytest.raises(NotCancelable):
        task_cancel(task_id=task_id, caller_id=friend.caller.id)
    assert task_claim(task_id=task_id, worker="w") is None
    assert Task.objects.get(pk=task_id).state == state


@pytest.mark.django_db(transaction=True)
def test_a_refused_message_leaves_nothing(submit: Submit, submission: Callable[..., Submission]) -> None:
    """Busy context, foreign or unknown task: no row of any kind, so that it can be sent again."""
    submit(context_id="busy")
    counts = Task.objects.count(), TaskEvent.objects.count()
    refused = submission(context_id="busy")
    for _ in range(2):
        with pytest.raises(NotSupported):
            task_submit(submission=refused)
    with pytest.raises(TaskNotFound):
        task_submit(submission=submission(continues=True))
    assert counts == (Task.objects.count(), TaskEvent.objects.count())


@pytest.mark.django_db(transaction=True)
def test_a_run_that_was_canceled_writes_no_turn(
    echo: None, submit: Submit, friend: Keyed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Canceled between the runner's end and the last write."""
    task_id = submit()

    async def run(self: EchoRunner, turn: Any, sink: Any, original: Any = EchoRunner.run) -> Any:
        outcome = await original(self, turn, sink)
        await run_db(task_cancel, task_id=task_id, caller_id=friend.caller.id)
        return outcome

    monkeypatch.setattr(EchoRunner, "run", run)
    task_run(task_id=task_id)
    assert Task.objects.get(pk=task_id).state == TaskState.CANCELED
    assert not Turn.objects.exists()
    assert not Task.objects.get(pk=task_id).artifacts.exists()


@pytest.mark.django_db(transaction=True)
def test_an_unexpected_exception_says_nothing_of_itself(
    echo: None, submit: Submit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller learns that it failed, the log learns why."""

    async def run(self: EchoRunner, turn: Any, sink: Any) -> Any:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr(EchoRunner, "run", run)
    task_id = submit()
    task_run(task_id=task_id)
    task = Task.objects.get(pk=task_id)
    assert task.state == TaskState.FAILED
    assert task.status_message is not None
    assert task.status_message["parts"] == [{"text": "The run failed unexpectedly."}]
    assert "the secret inside" in caplog.text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("granted", [True, False])
def test_a_runner_that_takes_long_to_load_costs_no_lease(
    echo: None, submit: Submit, friend: Keyed, granted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker's first run loads the model's library: its lease is renewed meanwhile, in a triage too."""
    if not granted:
        grant_revoke(caller=friend.caller, slug=CHAT)
    task_id = submit()

    def load() -> EchoRunner:
        claimed = Task.objects.get(pk=task_id).lease_expires_at
        wait_for(lambda: Task.objects.filter(pk=task_id, lease_expires_at__gt=claimed).exists())
        return EchoRunner()

    for module in ("dispatch", "triage"):
        monkeypatch.setattr(f"a2a_server.runs.{module}.runner", load)
    task_run(task_id=task_id)
    assert Task.objects.get(pk=task_id).state == (TaskState.COMPLETED if granted else TaskState.AUTH_REQUIRED)


@pytest.mark.django_db(transaction=True)
def test_a_turn_ends_at_its_deadline(
    echo: None, submit: Submit, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(self: EchoRunner, turn: Any, sink: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(EchoRunner, "run", run)
    settings.TURN_TIMEOUT_SECONDS = 0
    task_id = submit()
    task_run(task_id=task_id)
    task = Task.objects.get(pk=task_id)
    assert task.status_message is not None
    assert "longer than 0 seconds" in task.status_message["parts"][0]["text"]

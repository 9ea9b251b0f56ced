"""Pruning while others work: held tasks, several runs, messages that come for what is being deleted."""

import threading
import uuid
from typing import Any

import pytest
from django.db import connection, transaction

from a2a_server import pruning
from a2a_server.models import (
    Task,
    TaskEvent,
)
from a2a_server.pruning import Pruned, tasks_prune
from a2a_server.services import task_submit
from a2a_server.submission import Submission
from tests.a2a_server.stored import MakeTask, task_counts
from tests.conftest import Keyed
from tests.waiting import PATIENCE
from volcanic.models import Session


@pytest.mark.django_db(transaction=True)
def test_a_task_that_somebody_holds_is_passed_over(make_task: MakeTask) -> None:
    """Neither waited for nor deleted: the next run takes it, unless it was pinned meanwhile."""
    held, other, pinned = make_task(), make_task(), make_task()
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Task.objects.filter(pk=held.pk).update(worker="somebody")
            Task.objects.filter(pk=pinned.pk).update(pinned=True)
            holding.set()
            done.wait(PATIENCE)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(PATIENCE)
    pruned = tasks_prune(batch=1)
    done.set()
    thread.join()
    assert pruned == Pruned(tasks=1, turns=1, sessions=1, messages=0, folders=1)
    assert not Task.objects.filter(pk=other.pk).exists()
    assert tasks_prune().tasks == 1
    assert list(Task.objects.all()) == [pinned]
    assert TaskEvent.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_several_runs_at_once(make_task: MakeTask) -> None:
    """Together they delete each task once."""
    for _ in range(30):
        make_task()
    results: list[Pruned] = []

    def run() -> None:
        results.append(tasks_prune(batch=4))
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tasks_prune()  # what two of them passed over since the other held it
    assert task_counts() == [0] * 9
    assert sum(result.tasks for result in results) <= 30


@pytest.mark.django_db(transaction=True)
def test_a_message_comes_for_a_session_that_is_being_deleted(
    make_task: MakeTask, friend: Keyed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets its task, in that session or a new one."""
    monkeypatch.setattr("a2a_server.services.transitions.publish", lambda *_args: True)
    context = "again"
    session = make_task().session
    Session.objects.filter(pk=session.pk).update(scope=f"a2a-{friend.caller.pk}_{context}")
    deleting, sent = threading.Event(), threading.Event()

    def submit() -> None:
        deleting.wait(PATIENCE)
        task_submit(
            submission=Submission(
                caller_id=friend.caller.pk,
                caller_name="friend",
                workspace_id=friend.caller.workspace_id,
                message={"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "hi"}]},
                digest="d",
                task_id=uuid.uuid4(),
                context_id=context,
            )
        )
        sent.set()
        connection.close()

    original = pruning._empty

    def empty(before: Any) -> Any:
        deleting.set()
        sent.wait(0.03)
        return original(before)

    monkeypatch.setattr(pruning, "_empty", empty)
    thread = threading.Thread(target=submit)
    thread.start()
    tasks_prune()
    thread.join()
    task = Task.objects.get()
    assert Session.objects.get() == task.session

"""The owner's log of events: numbers without gaps under concurrent commits, and catching up after an absence."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from a2a_server.models import Task
from tests.conftest import Keyed
from tests.product import Api, Product
from tests.reviewing import Decision, decide
from tests.waiting import wait_for
from volcanic import events
from volcanic.aio import wakeups
from volcanic.events import event_append, events_after, events_last, events_prune
from volcanic.models import Event, Workspace
from volcanic.services import notification_create

pytestmark = pytest.mark.django_db(transaction=True)


def _append(workspace: Workspace, subject: object) -> None:
    event_append(workspace_id=workspace.pk, kind="task", subject=subject, payload={"n": subject})


def _subjects(workspace: Workspace, number: int = 0, **members: Any) -> list[str]:
    page = events_after(workspace_id=workspace.pk, number=number, **members)
    return [event.subject for event in page.events]


def test_numbered_for_each_workspace(workspace: Workspace, other_workspace: Workspace) -> None:
    for number in range(3):
        _append(workspace, number)
        _append(other_workspace, f"o{number}")
    for one in (workspace, other_workspace):
        page = events_after(workspace_id=one.pk, number=0)
        assert [event.number for event in page.events] == [1, 2, 3]
        assert (page.complete, page.last, events_last(workspace_id=one.pk)) == (True, 3, 3)
    assert _subjects(other_workspace) == ["o0", "o1", "o2"]


def test_a_page_resumes_where_it_was(workspace: Workspace) -> None:
    for number in range(5):
        _append(workspace, number)
    first = events_after(workspace_id=workspace.pk, number=0, limit=2)
    assert (_subjects(workspace, first.last, limit=2), first.last) == (["2", "3"], 2)
    nothing = events_after(workspace_id=workspace.pk, number=5)
    assert (nothing.events, nothing.complete, nothing.last) == ([], True, 5)
    _append(workspace, "new")
    assert _subjects(workspace, nothing.last) == ["new"]


def test_what_commits_late_is_not_skipped(workspace: Workspace) -> None:
    """A change that began first and commits last comes after what was read meanwhile."""
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        try:
            with transaction.atomic():
                _append(workspace, "slow")
                begun.set()
                go_on.wait(60)
        finally:
            connection.close()

    thread = threading.Thread(target=slow)
    thread.start()
    assert begun.wait(60)
    _append(workspace, "quick")
    assert _subjects(workspace) == ["quick"]
    go_on.set()
    thread.join(60)
    assert _subjects(workspace, 1) == ["slow"]
    assert [event.number for event in events_after(workspace_id=workspace.pk, number=0).events] == [1, 2]


def test_a_change_that_is_undone_leaves_nothing(workspace: Workspace) -> None:
    with transaction.atomic():
        _append(workspace, "never")
        transaction.set_rollback(True)
    assert _subjects(workspace) == []


def test_many_readers_number_once(workspace: Workspace) -> None:
    for number in range(50):
        _append(workspace, number)
    barrier, seen = threading.Barrier(5), list[list[int]]()

    def read() -> None:
        try:
            barrier.wait(60)
            seen.append([event.number for event in events_after(workspace_id=workspace.pk, number=0).events])
        finally:
            connection.close()

    threads = [threading.Thread(target=read) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == [list(range(1, 51))] * 5


def test_what_was_pruned_is_told(workspace: Workspace) -> None:
    """A page that was away for too long, or that knows another log, has to read its lists anew."""
    for number in range(4):
        _append(workspace, number)
    assert len(_subjects(workspace)) == 4
    old = timezone.now() - timedelta(days=4)
    Event.objects.filter(workspace=workspace, number__lte=2).update(created_at=old)
    assert events_prune() == 2
    page = events_after(workspace_id=workspace.pk, number=0)
    assert ([event.number for event in page.events], page.complete) == ([3, 4], False)
    assert events_after(workspace_id=workspace.pk, number=2).complete
    assert not events_after(workspace_id=workspace.pk, number=77).complete
    Event.objects.all().delete()
    page = events_after(workspace_id=workspace.pk, number=2)
    assert (page.events, page.complete, page.last) == ([], False, 4)


def test_a_page_that_waits_is_woken_after_commit(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[str] = []
    monkeypatch.setattr(wakeups, "send_soon", woken.append)
    with transaction.atomic():
        notification_create(workspace_id=workspace.pk, session_id=None, text="Hello.")
        assert woken == []
    assert woken == [events.wake_key(workspace.pk)]


async def test_a_burst_of_changes_is_one_wake_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    def send(key: str, _hint: str = "") -> None:
        if key in ("one", "two"):  # others may be left from what ran before in this process
            sent.append(key)

    monkeypatch.setattr(wakeups, "send", send)
    for _ in range(100):
        wakeups.send_soon("one")
        wakeups.send_soon("two")
    await asyncio.to_thread(wait_for, lambda: len(sent) >= 2)
    assert sorted(sent) == ["one", "two"]
    wakeups.send_soon("one")
    await asyncio.to_thread(wait_for, lambda: len(sent) == 3)


def test_reading_what_is_known_writes_nothing(workspace: Workspace, django_assert_max_num_queries: Any) -> None:
    _append(workspace, 1)
    _subjects(workspace)
    with django_assert_max_num_queries(3):
        events_after(workspace_id=workspace.pk, number=1)


def test_a_task_is_shown_from_its_arrival_to_its_end(api: Api, workspace: Workspace) -> None:
    """Each change of its state, in the transaction of that change."""
    task = api.send("hello")
    wait_for(lambda: len([one for one in _shown(workspace) if one[0] == "task"]) == 3)
    assert [one for one in _shown(workspace) if one[0] == "task"] == [
        ("task", task["id"], {"state": state}) for state in ("submitted", "working", "completed")
    ]
    report = [one for one in _shown(workspace) if one[0] == "notification"]
    assert [payload for _, _, payload in report] == [{"kind": "report"}]


def test_a_review_is_shown_opened_and_decided(
    api: Api, stranger: Keyed, product: Product, workspace: Workspace
) -> None:
    with product.api(stranger.key) as strange:
        task = strange.send("May I?", at_once=True)
        strange.wait(task["id"], "AUTH_REQUIRED")
        decide(task, Decision.DECLINE)
        strange.wait(task["id"], "REJECTED")
    states = [payload["state"] for kind, subject, payload in _shown(workspace) if kind == "review"]
    assert states == ["pending", "declined"]
    assert Task.objects.get(pk=task["id"]).state == "rejected"


def _shown(workspace: Workspace) -> list[tuple[str, str, dict[str, Any]]]:
    page = events_after(workspace_id=workspace.pk, number=0)
    return [(event.kind, event.subject, event.payload) for event in page.events]

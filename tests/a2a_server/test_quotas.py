"""Quotas: refused and taken messages, races, the counts of stored tasks and bytes."""

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries, Settings

from a2a_server.errors import NotSupported, QuotaExceeded, TaskNotFound
from a2a_server.files import incoming_file, incoming_url
from a2a_server.models import InboundFile, Task, TaskState
from a2a_server.quotas import usage_count
from a2a_server.services import task_cancel, task_claim, task_settle, task_submit
from a2a_server.submission import Submission
from a2a_server.tasks import count_usage, prune
from tests.a2a_server.stored import stored_rows
from tests.conftest import Keyed
from tests.waiting import PATIENCE, wait_for
from trust.limits import COLUMNS, Limits
from trust.models import Caller
from volcanic.celery import app

Submit = Callable[..., uuid.UUID]


@pytest.fixture
def submit(friend: Keyed, monkeypatch: pytest.MonkeyPatch) -> Submit:
    """Submits a message of the friend's, with `limits` by column, and returns the task's id.

    The mark of what the friend has stored comes along, as authentication reads it.
    """
    monkeypatch.setattr("a2a_server.services.transitions.publish", lambda *_args: True)

    def make(*, limits: dict[str, int] | None = None, **members: Any) -> uuid.UUID:
        # What a test does not set is far away.
        values = [(limits or {}).get(column, 10**9) for column in COLUMNS]
        given: dict[str, Any] = {
            "caller_id": friend.caller.id,
            "caller_name": friend.caller.name,
            "workspace_id": friend.caller.workspace_id,
            "message": {"role": "ROLE_USER", "messageId": str(uuid.uuid4()), "parts": [{"text": "hi"}]},
            "digest": uuid.uuid4().hex,
            "task_id": uuid.uuid4(),
            "limits": Limits.of(values),
            "stored_tasks": Caller.objects.values_list("stored_tasks", flat=True).get(pk=friend.caller.id),
        }
        return task_submit(submission=Submission(**given | members)).task_id

    return make


def test_the_settings_count_where_the_caller_has_no_number(settings: Settings) -> None:
    settings.MAX_RUNNING_TASKS = 7
    assert Limits.of().max_running_tasks == 7
    assert Limits.of([None, 3]).max_running_tasks == 3
    assert Limits.of([None, 0]).max_running_tasks == 0


@pytest.mark.django_db
def test_no_limit(submit: Submit) -> None:
    for _ in range(3):
        submit(limits=dict.fromkeys(COLUMNS, 0))
    assert Task.objects.count() == 3


@pytest.mark.django_db
@pytest.mark.parametrize("column", ["max_running_tasks", "max_open_contexts", "max_stored_tasks"])
def test_the_same_message_again_is_no_new_task(submit: Submit, column: str) -> None:
    """A retry gets its task, however full it is."""
    full = {column: 1}
    task_id = submit(limits=full, digest="same")
    usage_count()
    assert submit(limits=full, digest="same") == task_id
    with pytest.raises(QuotaExceeded):
        submit(limits=full)


@pytest.mark.django_db
def test_open_contexts(submit: Submit, friend: Keyed) -> None:
    """A context is open while a task in it has not ended. More messages in it open none."""
    limits = {"max_open_contexts": 2}
    one, two = submit(limits=limits, context_id="one"), submit(limits=limits, context_id="two")
    with pytest.raises(QuotaExceeded, match="2 contexts have tasks that have not ended, and 2 may"):
        submit(limits=limits, context_id="three")
    run = task_claim(task_id=one, worker="w")
    assert run is not None
    assert task_settle(run=run, state=TaskState.INPUT_REQUIRED, text="well?")
    submit(limits=limits, context_id="one")
    with pytest.raises(QuotaExceeded):
        submit(limits=limits)
    task_cancel(task_id=two, caller_id=friend.caller.id)
    submit(limits=limits)


@pytest.mark.django_db
def test_an_answer_counts_as_running_and_no_more(submit: Submit, friend: Keyed) -> None:
    """Its task is stored already and its context open; what is wrong with it otherwise is said first."""
    waiting = submit()
    run = task_claim(task_id=waiting, worker="w")
    assert run is not None
    assert task_settle(run=run, state=TaskState.INPUT_REQUIRED, text="well?")
    running = submit()
    with pytest.raises(QuotaExceeded, match="maxRunningTasks"):
        submit(limits={"max_running_tasks": 1}, task_id=waiting, continues=True)
    assert Task.objects.get(pk=waiting).state == TaskState.INPUT_REQUIRED
    with pytest.raises(TaskNotFound):
        submit(limits={"max_running_tasks": 1}, task_id=uuid.uuid4(), continues=True)
    with pytest.raises(NotSupported):
        submit(limits={"max_running_tasks": 1}, task_id=running, continues=True)
    usage_count()
    full = {"max_running_tasks": 2, "max_open_contexts": 1, "max_stored_tasks": 1}
    assert submit(limits=full, task_id=waiting, continues=True) == waiting
    assert Task.objects.get(pk=waiting).state == TaskState.SUBMITTED


@pytest.mark.django_db
def test_inbox_bytes(submit: Submit, settings: Settings) -> None:
    """What waits to be stored counts; what is to be fetched counts as the most it may be, until it is counted anew."""
    settings.MAX_FILE_BYTES = 100
    limits = {"max_inbox_bytes": 250}

    def sized(size: int) -> Any:
        return [incoming_file(position=0, filename="a", declared_type="", content=b"x" * size)]

    url = [incoming_url(position=0, filename="b", declared_type="", url="https://example.com/b")]
    first = submit(limits=limits, files=sized(100))
    fetched = submit(limits=limits, files=url)
    before = stored_rows()
    with pytest.raises(QuotaExceeded, match="Files of 200 bytes are stored, and with these it would be over 250"):
        submit(limits=limits, files=sized(51))
    with pytest.raises(QuotaExceeded):
        submit(limits=limits, files=url)
    assert stored_rows() == before
    submit(limits=limits)  # brings none
    InboundFile.objects.filter(task_id=fetched).update(path="p", size=40)
    InboundFile.objects.filter(task_id=first).update(path="q", size=100, content=None)
    assert usage_count() == 1
    submit(limits=limits, files=sized(100))
    with pytest.raises(QuotaExceeded, match="240 bytes"):
        submit(limits=limits, files=sized(11))


@pytest.mark.django_db
def test_what_could_not_be_fetched_does_not_count(submit: Submit, settings: Settings) -> None:
    url = [incoming_url(position=0, filename="b", declared_type="", url="https://example.com/b")]
    limits = {"max_inbox_bytes": settings.MAX_FILE_BYTES}
    task_id = submit(limits=limits, files=url)
    with pytest.raises(QuotaExceeded):
        submit(limits=limits, files=url)
    Task.objects.filter(pk=task_id).update(state="failed")
    usage_count()
    submit(limits=limits, files=url)


def _in_threads(count: int, each: int, submit: Submit, **members: Any) -> list[Any]:
    """Submits in `count` threads at a time, `each` times in each; returns the results and the refusals."""
    barrier = threading.Barrier(count)
    results: list[Any] = []

    def work() -> None:
        barrier.wait(PATIENCE)
        for _ in range(each):
            try:
                results.append(submit(**members))
            except QuotaExceeded as error:
                results.append(error)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("column", ["max_running_tasks", "max_open_contexts"])
def test_a_race_gets_past_a_quota_by_those_that_race(submit: Submit, column: str) -> None:
    """What runs in the same moment is not seen. What comes after it is refused, however often it is tried."""
    racing, limit = 10, 5
    results = _in_threads(racing, 3, submit, limits={column: limit})
    taken = sum(isinstance(result, uuid.UUID) for result in results)
    assert Task.objects.count() == taken
    assert limit <= taken <= limit + racing - 1
    assert len(results) == racing * 3
    with pytest.raises(QuotaExceeded):
        submit(limits={column: limit})


@pytest.mark.django_db(transaction=True)
def test_a_race_of_files(submit: Submit, friend: Keyed) -> None:
    """Exactly as many get in as fit; the refused ones leave neither a task nor a mark."""
    file = incoming_file(position=0, filename="a", declared_type="", content=b"x" * 10)
    results = _in_threads(10, 2, submit, limits={"max_inbox_bytes": 75}, files=[file])
    assert sum(isinstance(result, uuid.UUID) for result in results) == 7
    assert Task.objects.count() == InboundFile.objects.count() == 7
    assert _marks(friend) == (0, 70)
    usage_count()
    assert _marks(friend) == (7, 70)


@pytest.mark.django_db
def test_what_it_costs(submit: Submit, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    """Nothing, near a quota or far from one: the statement that makes the task counts. The first is the test's own."""
    for limits in ({}, {"max_running_tasks": 5}, {"max_open_contexts": 5}, {"max_stored_tasks": 5}):
        with django_assert_num_queries(2):
            submit(limits=limits)


def _marks(caller: Keyed) -> tuple[int, int]:
    row: tuple[int, int] = Caller.objects.values_list("stored_tasks", "inbox_bytes").get(pk=caller.caller.pk)
    return row


@pytest.mark.django_db
def test_stored_tasks_count_as_of_the_last_count(submit: Submit) -> None:
    """What comes in between is bounded by the limit of requests a minute."""
    limits = {"max_stored_tasks": 2}
    for _ in range(3):
        submit(limits=limits)
    usage_count()
    with pytest.raises(QuotaExceeded, match="3 tasks are stored, and 2 may be"):
        submit(limits=limits)


@pytest.mark.django_db
def test_wrong_marks_are_mended(submit: Submit, friend: Keyed, second_friend: Keyed, stranger: Keyed) -> None:
    """Too high or too low, each caller's by what is its own; right ones are left alone."""
    for _ in range(2):
        submit(files=[incoming_file(position=0, filename="a", declared_type="", content=b"x" * 10)])
    Caller.objects.filter(pk=second_friend.caller.pk).update(stored_tasks=9, inbox_bytes=9)
    assert usage_count() == 2
    assert [_marks(caller) for caller in (friend, second_friend, stranger)] == [(2, 20), (0, 0), (0, 0)]
    assert usage_count() == 0
    Caller.objects.filter(pk=friend.caller.pk).update(inbox_bytes=0)
    assert usage_count() == 1
    assert _marks(friend) == (2, 20)


@pytest.mark.django_db(transaction=True)
def test_files_that_come_while_it_is_counted_keep_their_place(submit: Submit, friend: Keyed) -> None:
    """The count sees them not yet, and corrects the mark all the same."""
    file = [incoming_file(position=0, filename="a", declared_type="", content=b"x" * 10)]
    submit(files=file)
    Caller.objects.filter(pk=friend.caller.pk).update(inbox_bytes=3)
    counting: list[int] = []

    def count() -> None:
        connection.ensure_connection()
        counting.append(connection.connection.info.backend_pid)
        usage_count()
        connection.close()

    def waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE pid = ANY(%s) AND NOT granted)", [counting])
            return bool(cursor.fetchone()[0])

    thread = threading.Thread(target=count)
    with transaction.atomic():
        submit(files=file)
        thread.start()
        wait_for(waits)
    thread.join(10)
    assert _marks(friend) == (1, 20)


@pytest.mark.django_db
def test_deleted_tasks_make_room(submit: Submit, friend: Keyed) -> None:
    limits = {"max_stored_tasks": 1, "max_inbox_bytes": 10}
    file = [incoming_file(position=0, filename="a", declared_type="", content=b"x" * 10)]
    task_id = submit(limits=limits, files=file)
    usage_count()
    with pytest.raises(QuotaExceeded, match="maxStoredTasks"):
        submit(limits=limits)
    with pytest.raises(QuotaExceeded, match="maxInboxBytes"):
        submit(limits={"max_inbox_bytes": 10}, files=file)
    Task.objects.filter(pk=task_id).delete()
    usage_count()
    assert _marks(friend) == (0, 0)
    submit(limits=limits, files=file)


@pytest.mark.django_db
def test_it_is_counted_each_minute_and_after_pruning(submit: Submit, friend: Keyed, settings: Settings) -> None:
    (entry,) = [entry for entry in app.conf.beat_schedule.values() if entry["task"] == count_usage.name]
    assert entry["schedule"] == 60
    task_id = submit()
    count_usage()
    assert _marks(friend) == (1, 0)
    settings.RETENTION_DAYS = 1
    long_ago = timezone.now() - timedelta(days=2)
    Task.objects.filter(pk=task_id).update(state="completed", status_at=long_ago)
    prune()
    assert _marks(friend) == (0, 0)


@pytest.mark.django_db
def test_a_refused_file_leaves_no_mark(submit: Submit, friend: Keyed) -> None:
    """Neither the quota's own refusal nor a later one in the same transaction."""
    file = [incoming_file(position=0, filename="a", declared_type="", content=b"x" * 10)]
    with pytest.raises(QuotaExceeded):
        submit(limits={"max_inbox_bytes": 9}, files=file)
    submit(files=file, context_id="busy")
    with pytest.raises(NotSupported):
        submit(files=file, context_id="busy")
    assert _marks(friend) == (0, 10)

"""Quotas: what is refused and how, what is not, and that many at a time don't get past one."""

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.types import a2a_pb2
from a2a.utils.errors import A2AError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import DjangoAssertNumQueries, Settings

from a2a_server import quotas
from a2a_server.errors import NotSupported, QuotaExceeded, TaskNotFound
from a2a_server.files import incoming_file, incoming_url
from a2a_server.models import InboundFile, ReceivedMessage, Task, TaskEvent, TaskState
from a2a_server.services import task_cancel, task_claim, task_settle, task_submit
from a2a_server.submission import Submission
from tests.conftest import Keyed
from tests.product import Api, Product, message, state_of
from tests.waiting import PATIENCE
from trust.limits import COLUMNS, Limits
from trust.services import caller_set_limits
from volcanic.models import Session

Submit = Callable[..., uuid.UUID]
# For each quota the column that makes it bite at the second message, and what the first message does.
QUOTAS = {
    "maxRunningTasks": ("max_running_tasks", "sleep: 600", "WORKING"),
    "maxOpenContexts": ("max_open_contexts", "ask: well?", "INPUT_REQUIRED"),
    "maxStoredTasks": ("max_stored_tasks", "hello", "COMPLETED"),
}


@pytest.fixture(autouse=True)
def _nothing_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "_stored_counts", quotas._StoredCounts())


@pytest.fixture
def submit(friend: Keyed, monkeypatch: pytest.MonkeyPatch) -> Submit:
    """Submits a message of the friend's, with `limits` by column, and returns the task's id."""
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
        }
        return task_submit(submission=Submission(**given | members)).task_id

    return make


def _rows() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Task, TaskEvent, ReceivedMessage, Session, InboundFile))


def _refused(answer: dict[str, Any], quota: str) -> None:
    assert answer["error"]["code"] == -32000, answer
    assert f"Quota {quota} exceeded" in answer["error"]["message"]
    (info,) = answer["error"]["data"]
    assert (info["reason"], info["metadata"]["quota"]) == ("QUOTA_EXCEEDED", quota)
    assert (info["metadata"]["limit"], info["metadata"]["used"]) == ("1", "1")


@pytest.fixture
def full(api: Api, friend: Keyed, request: pytest.FixtureRequest) -> str:
    """A quota that the friend has used up, by name."""
    column, text, state = QUOTAS[request.param]
    caller_set_limits(caller=friend.caller, **{column: 1})
    api.wait(api.send(text, at_once=True)["id"], state)
    return str(request.param)


@pytest.mark.parametrize("full", QUOTAS, indirect=True)
def test_over_a_quota_on_every_interface(api: Api, full: str) -> None:
    """A clear refusal in the binding's own shape, that names the quota and its value; no task and no other row."""
    before = _rows()
    params = {"message": message()}
    _refused(api.rpc("SendMessage", params), full)
    _refused(api.rpc("SendStreamingMessage", params), full)
    for path in ("/a2a/v1/message:send", "/a2a/v1/message:stream"):
        answer = api.http.post(path, json=params)
        assert answer.status_code == 429
        error = answer.json()["error"]
        assert (error["code"], error["status"]) == (429, "RESOURCE_EXHAUSTED")
        assert error["details"][0]["reason"] == "QUOTA_EXCEEDED"
        assert error["details"][0]["metadata"] == {"quota": full, "limit": "1", "used": "1"}
        assert full in error["message"]
    assert _rows() == before


@pytest.mark.parametrize("full", QUOTAS, indirect=True)
def test_over_a_quota_in_03(api: Api, full: str) -> None:
    before = _rows()
    old = {"kind": "message", "role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hi"}]}
    for method in ("message/send", "message/stream"):
        answer = api.rpc(method, {"message": old})
        assert answer["error"]["code"] == -32000
        assert full in answer["error"]["message"]
    body = {"request": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}}
    for path in ("message:send", "message:stream"):
        refused = api.http.post(f"/a2a/v0.3/v1/{path}", json=body)
        assert refused.status_code == 429, refused.text
        assert refused.json()["type"] == "QuotaExceededError"
        assert full in refused.json()["message"]
    assert _rows() == before


@pytest.fixture
def spent(transactional_db: None, product: Product, friend: Keyed) -> str:
    """The friend's key; it may store one task and has."""
    product.revive()
    caller_set_limits(caller=friend.caller, max_stored_tasks=1)
    with product.api(friend.key) as api:
        api.send("hello")
    return friend.key


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize("streaming", [True, False])
async def test_the_sdk_client_sees_an_a2a_error(product: Product, spent: str, binding: str, streaming: bool) -> None:
    """Over REST the client knows only the specification's own errors, and tells the status of any other."""
    async with httpx.AsyncClient(headers={"X-API-Key": spent}, timeout=PATIENCE) as http:
        config = ClientConfig(httpx_client=http, streaming=streaming, supported_protocol_bindings=[binding])
        client = await create_client(product.url, config)
        request = a2a_pb2.SendMessageRequest(
            message=a2a_pb2.Message(role=a2a_pb2.ROLE_USER, message_id="m", parts=[a2a_pb2.Part(text="hi")])
        )
        with pytest.raises(A2AError, match=r"Quota maxStoredTasks exceeded|HTTP Error 429"):
            _ = [event async for event in client.send_message(request)]


def test_room_again_when_a_task_ends(api: Api, friend: Keyed) -> None:
    """And the same message that was refused is then taken."""
    caller_set_limits(caller=friend.caller, max_running_tasks=1)
    task = api.send("sleep: 600", at_once=True)
    params = {"message": message("hello")}
    _refused(api.rpc("SendMessage", params), "maxRunningTasks")
    api.result("CancelTask", {"id": task["id"]})
    assert state_of(api.result("SendMessage", params)["task"]) == "COMPLETED"


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
def test_the_same_message_again_is_no_new_task(submit: Submit) -> None:
    """A retry gets its task, however full everything is."""
    full = dict.fromkeys(COLUMNS, 1)
    task_id = submit(limits=full, digest="same")
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
    full = {"max_running_tasks": 2, "max_open_contexts": 1, "max_stored_tasks": 1}
    assert submit(limits=full, task_id=waiting, continues=True) == waiting
    assert Task.objects.get(pk=waiting).state == TaskState.SUBMITTED


@pytest.mark.django_db
def test_inbox_bytes(submit: Submit, settings: Settings) -> None:
    """What waits to be stored counts, and what is to be fetched counts as the most it may be."""
    settings.MAX_FILE_BYTES = 100
    limits = {"max_inbox_bytes": 250}

    def sized(size: int) -> Any:
        return [incoming_file(position=0, filename="a", declared_type="", content=b"x" * size)]

    url = [incoming_url(position=0, filename="b", declared_type="", url="https://example.com/b")]
    first = submit(limits=limits, files=sized(100))
    fetched = submit(limits=limits, files=url)
    before = _rows()
    with pytest.raises(QuotaExceeded, match="Files of 200 bytes are stored, and with these it would be over 250"):
        submit(limits=limits, files=sized(51))
    with pytest.raises(QuotaExceeded):
        submit(limits=limits, files=url)
    assert _rows() == before
    submit(limits=limits)  # brings none
    InboundFile.objects.filter(task_id=fetched).update(path="p", size=40)
    InboundFile.objects.filter(task_id=first).update(path="q", size=100, content=None)
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
    submit(limits=limits, files=url)


def test_files_over_the_quota_on_the_wire(api: Api, friend: Keyed) -> None:
    caller_set_limits(caller=friend.caller, max_inbox_bytes=10)
    part = {"raw": "eHh4eHh4eHh4eHh4", "filename": "x.txt"}  # 12 bytes
    answer = api.rpc("SendMessage", {"message": message(parts=[part])})
    (info,) = answer["error"]["data"]
    assert info["metadata"] == {"quota": "maxInboxBytes", "limit": "10", "used": "0"}
    refused = api.http.post("/a2a/v1/message:stream", json={"message": message(parts=[part])})
    assert refused.status_code == 429
    assert not any(_rows())


def _in_threads(count: int, each: int, submit: Submit, **members: Any) -> list[Any]:
    """Submits from so many threads at a time, so often each; returns what came of it."""
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
@pytest.mark.parametrize("column", ["max_running_tasks", "max_open_contexts", "max_stored_tasks"])
def test_a_race_does_not_get_past_a_small_quota(submit: Submit, column: str) -> None:
    """Exactly as many get in as may."""
    results = _in_threads(20, 2, submit, limits={column: 5})
    assert Task.objects.count() == 5
    assert sum(isinstance(result, uuid.UUID) for result in results) == 5
    assert len(results) == 40


@pytest.mark.django_db(transaction=True)
def test_a_race_of_files(submit: Submit) -> None:
    file = incoming_file(position=0, filename="a", declared_type="", content=b"x" * 10)
    _in_threads(10, 2, submit, limits={"max_inbox_bytes": 75}, files=[file])
    assert Task.objects.count() == InboundFile.objects.count() == 7


@pytest.mark.django_db(transaction=True)
def test_a_race_far_from_the_quota_and_then_near(submit: Submit) -> None:
    """Without a lock at first. What the documentation allows is a task for each thread that hangs."""
    limit = quotas.MARGIN + 10
    _in_threads(20, 4, submit, limits={"max_running_tasks": limit})
    assert limit <= Task.objects.count() <= limit + 20


@pytest.mark.django_db
def test_what_it_costs(submit: Submit, django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    """Far from every quota nothing; near one, at most three statements more, of which one may be a first try."""
    with django_assert_max_num_queries(1):
        submit()
    with CaptureQueriesContext(connection) as queries:
        submit(limits={"max_running_tasks": 5})
    assert len([query for query in queries if "SAVEPOINT" not in query["sql"]]) <= 2
    for _ in range(4):
        submit()
    with CaptureQueriesContext(connection) as queries:
        submit(limits={"max_running_tasks": quotas.MARGIN + 6})
    assert len([query for query in queries if "SAVEPOINT" not in query["sql"]]) <= 4


@pytest.mark.django_db
def test_stored_tasks_are_counted_once_a_minute_far_from_the_quota(
    submit: Submit, friend: Keyed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Near it, each time: what a caller may send in a minute never gets past."""
    counts = quotas._stored_counts
    far, near = Limits.of([10, 0, 0, 0, 100]), Limits.of([10, 0, 0, 0, 60])
    assert counts.due(1, far)
    counts.note(1, 5, far)
    assert not counts.due(1, far)
    counts.note(1, 10, near)
    assert counts.due(1, near)
    counts.note(1, 50, far)
    assert counts.due(1, far)
    counts.note(1, 5, far)
    later = time.monotonic() + 61
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert counts.due(1, far)
    limits = {"max_stored_tasks": 40, "requests_per_minute": 1}
    with CaptureQueriesContext(connection) as queries:
        submit(limits=limits)
        submit(limits=limits)
    assert ["LIMIT" in query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]] == [True, False]

"""ListTasks: filters, order, paging (§3.1.4)."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from a2a_server.models import Task, TaskState
from tests.conftest import Keyed
from tests.product import Api
from volcanic.models import Session

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def seven(api: Api, friend: Keyed) -> list[str]:
    """Seven tasks of the friend's, the newest first; three of them share one moment."""
    rows = []
    for number in range(7):
        session = Session.objects.create(workspace=friend.caller.workspace, kind="inbound", scope=f"s{number}")
        rows.append(
            Task(
                caller=friend.caller,
                session=session,
                context_id="even" if number % 2 == 0 else "odd",
                state=TaskState.COMPLETED if number < 5 else TaskState.FAILED,
                status_at=NOON if 2 <= number <= 4 else NOON + timedelta(minutes=number),
                history=[],
            )
        )
    Task.objects.bulk_create(rows)
    return [str(row.id) for row in sorted(rows, key=lambda row: (row.status_at, row.id), reverse=True)]


def _ids(answer: dict[str, Any]) -> list[str]:
    return [task["id"] for task in answer["tasks"]]


def test_pages_cover_all_once(api: Api, seven: list[str]) -> None:
    """Ties by id, totalSize before paging, the token always there and empty at the end."""
    seen: list[str] = []
    token, pages = "", 0
    while True:
        answer = api.result("ListTasks", {"pageSize": 2, "pageToken": token})
        assert (answer["totalSize"], answer["pageSize"]) == (7, 2)
        seen += _ids(answer)
        token, pages = answer["nextPageToken"], pages + 1
        if not token:
            break
    assert (seen, pages) == (seven, 4)


def test_filters(api: Api, seven: list[str]) -> None:
    """The filter is in the count too."""
    even = api.result("ListTasks", {"contextId": "even"})
    assert even["totalSize"] == len(even["tasks"]) == 4
    failed = api.result("ListTasks", {"status": "TASK_STATE_FAILED", "contextId": "odd"})
    assert failed["totalSize"] == 1
    assert failed["tasks"][0]["status"]["state"] == "TASK_STATE_FAILED"
    assert api.result("ListTasks", {"status": 4})["totalSize"] == 2
    assert api.result("ListTasks", {"status": "TASK_STATE_UNSPECIFIED"})["totalSize"] == 7
    later = api.result("ListTasks", {"statusTimestampAfter": "2026-05-01T12:05:00Z"})
    assert later["totalSize"] == 2
    assert api.result("ListTasks", {"contextId": "nobody's"})["totalSize"] == 0


def test_the_same_over_rest(api: Api, seven: list[str]) -> None:
    """Names in camelCase, values as strings."""
    query = {"pageSize": "3", "status": "TASK_STATE_COMPLETED", "statusTimestampAfter": "2026-05-01T12:00:00Z"}
    answer = api.http.get("/a2a/v1/tasks", params=query).json()
    assert (answer["totalSize"], len(answer["tasks"])) == (5, 3)
    rest = api.http.get("/a2a/v1/tasks", params={**query, "pageToken": answer["nextPageToken"]}).json()
    assert len(rest["tasks"]) == 2
    assert rest["nextPageToken"] == ""


def test_artifacts_only_when_asked(api: Api) -> None:
    api.send("hello")
    for answer in (
        api.result("ListTasks"),
        api.result("ListTasks", {"includeArtifacts": False}),
        api.http.get("/a2a/v1/tasks").json(),
    ):
        assert "artifacts" not in answer["tasks"][0]
    for answer in (
        api.result("ListTasks", {"includeArtifacts": True}),
        api.http.get("/a2a/v1/tasks?includeArtifacts=true").json(),
    ):
        assert answer["tasks"][0]["artifacts"][0]["artifactId"] == "response"
    api.send("ask: well?")
    assert api.result("ListTasks", {"includeArtifacts": True})["tasks"][0]["artifacts"] == []


@pytest.mark.parametrize(
    "params",
    [
        {"pageSize": 0},
        {"pageSize": -1},
        {"pageSize": 101},
        {"pageSize": "many"},
        {"pageToken": "nonsense"},
        {"pageToken": "MjAyNi0wNS0wMSBub3QtYS11dWlk"},
        {"status": "TASK_STATE_WHATEVER"},
        {"status": 77},
        {"statusTimestampAfter": "yesterday"},
    ],
)
def test_bad_parameters(api: Api, params: dict[str, Any]) -> None:
    """InvalidParams, not a full list."""
    assert api.error("ListTasks", params) == -32602
    assert api.http.get("/a2a/v1/tasks", params=params).status_code == 400


def test_no_task_of_another_caller(api: Api, seven: list[str], stranger: Keyed) -> None:
    Task.objects.filter(pk=uuid.UUID(seven[0])).update(caller=stranger.caller)
    answer = api.result("ListTasks")
    assert answer["totalSize"] == 6
    assert seven[0] not in _ids(answer)


def test_a_task_that_moves_between_two_pages_is_caught_up_with(api: Api, seven: list[str]) -> None:
    """It jumps to the front, past the page edge; asking for what changed since then finds it."""
    first = api.result("ListTasks", {"pageSize": 3})
    started = first["tasks"][0]["status"]["timestamp"]
    last = seven[-1]
    Task.objects.filter(pk=last).update(status_at=NOON + timedelta(days=1))
    rest = api.result("ListTasks", {"pageSize": 100, "pageToken": first["nextPageToken"]})
    assert last not in _ids(first) + _ids(rest)
    assert len(set(_ids(first) + _ids(rest))) == 6
    caught = api.result("ListTasks", {"statusTimestampAfter": started})
    assert last in _ids(caught)

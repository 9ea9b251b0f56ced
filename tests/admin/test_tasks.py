"""The tasks' screen: found by id and context, shown with everything that happened, canceled through the service."""

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from a2a_server.admin import tasks as screens
from a2a_server.admin.shown import artifact_shown, event_shown, message_shown, part_shown
from a2a_server.models import Artifact, Task, TaskEvent, TaskState
from tests.admin.conftest import Rows, make_task

HOSTILE = "<script>alert('a')</script><img src=x onerror=alert(1)>"


def _url(page: str, *args: object) -> str:
    return reverse(f"admin:a2a_server_task_{page}", args=args)


def _page(client: Client, task: Task, query: str = "") -> str:
    response = client.get(_url("change", task.pk) + query)
    assert response.status_code == 200
    return response.content.decode()


def _listed(client: Client, **query: Any) -> str:
    response = client.get(_url("changelist"), query)
    assert response.status_code == 200
    return response.content.decode()


def test_a_task_is_shown_with_everything(as_owner: Client, rows: Rows) -> None:
    text = _page(as_owner, rows.task)
    for part in ("olivias request", "olivias question", "olivias answer", "olivias-bot", "input required"):
        assert part in text.replace("Input Required", "input required"), part
    assert reverse("admin:volcanic_session_change", args=[rows.session.pk]) in text
    assert "_save" not in text


def test_texts_of_callers_are_escaped(as_owner: Client, rows: Rows) -> None:
    message = {"role": "ROLE_USER", "parts": [{"text": HOSTILE}, {"data": {"x": HOSTILE}}, {"url": "javascript:x()"}]}
    task = make_task(rows, history=[message], status_message=message, metadata={HOSTILE: HOSTILE})
    payload = {"artifactId": HOSTILE, "name": HOSTILE, "description": HOSTILE, "parts": message["parts"]}
    Artifact.objects.create(task=task, artifact_id=HOSTILE[:100], payload=payload)
    TaskEvent.objects.create(task=task, seq=2, payload={"artifactUpdate": {"artifact": payload}})
    for text in (_page(as_owner, task), _listed(as_owner), as_owner.get(reverse("admin:index")).content.decode()):
        assert "<script>alert(" not in text
        assert "<img src=x" not in text
        assert 'href="javascript:' not in text
        assert "&lt;script&gt;" in text


def test_the_event_log_goes_page_by_page(as_owner: Client, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screens, "EVENTS_PER_PAGE", 2)
    for seq in (2, 3):
        payload = {"artifactUpdate": {"artifact": {"artifactId": "response", "parts": [{"text": f"chunk {seq}"}]}}}
        TaskEvent.objects.create(task=rows.task, seq=seq, payload=payload)
    first = _page(as_owner, rows.task)
    assert "chunk 2" in first
    assert "chunk 3" not in first
    assert "?after=2" in first
    assert "chunk 3" in _page(as_owner, rows.task, "?after=2")
    assert "chunk 2" in _page(as_owner, rows.task, "?after=x")


@pytest.mark.parametrize("state", TaskState.values)
def test_each_state_has_its_label(state: str, as_owner: Client, rows: Rows) -> None:
    assert state in screens.STATE_LABELS
    if state != TaskState.WORKING:  # which needs a lease
        make_task(rows, state=TaskState(state))
    assert TaskState(state).label in _listed(as_owner)


def test_tasks_are_found_by_id_and_context(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    task = make_task(rows, history=[{"role": "ROLE_USER", "parts": [{"text": "the other request"}]}])
    for query in (str(task.pk), task.pk.hex, task.context_id, task.context_id[:8], f" {task.pk} "):
        text = _listed(as_owner, q=query)
        assert "the other request" in text, query
        assert "olivias request" not in text, query
    assert "olivias request" in _listed(as_owner, q="olivias-con")
    for query in (str(other_rows.task.pk), "oscars-context", str(uuid.uuid4()), "x'"):
        assert "request</a>" not in _listed(as_owner, q=query)


def test_tasks_are_filtered(as_owner: Client, rows: Rows) -> None:
    assert "olivias request" in _listed(as_owner, state__exact="input_required")
    assert "olivias request" not in _listed(as_owner, state__exact="completed")
    assert "olivias request" in _listed(as_owner, caller__id__exact=rows.caller.pk)
    assert "olivias request" not in _listed(as_owner, created_at__lt="2020-01-01 00:00:00+00:00")


def test_a_task_without_text_is_listed_by_its_id(as_owner: Client, rows: Rows) -> None:
    task = make_task(rows, history=[{"role": "ROLE_USER", "parts": [{"data": {"a": 1}}]}])
    assert str(task.pk) in _listed(as_owner)


def test_cancel_button(as_owner: Client, rows: Rows) -> None:
    assert "Cancel the task" in _page(as_owner, rows.task)
    assert as_owner.post(_url("cancel", rows.task.pk)).status_code == 302
    rows.task.refresh_from_db()
    assert rows.task.state == TaskState.CANCELED
    assert rows.task.events.count() == 2
    text = _page(as_owner, rows.task)
    assert "The task was canceled." in text
    assert "Cancel the task" not in text
    as_owner.post(_url("cancel", rows.task.pk))
    assert "has ended already" in _page(as_owner, rows.task)
    assert rows.task.events.count() == 2


def test_cancel_action(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    ended = make_task(rows, state=TaskState.COMPLETED)
    chosen = [rows.task.pk, other_rows.task.pk, ended.pk]
    response = as_owner.post(_url("changelist"), {"action": "cancel", "_selected_action": chosen}, follow=True)
    assert "Canceled: 1." in response.content.decode()
    states = [Task.objects.get(pk=pk).state for pk in chosen]
    assert states == [TaskState.CANCELED, TaskState.INPUT_REQUIRED, TaskState.COMPLETED]


def test_cancel_is_the_owners_by_post_with_a_csrf_token(
    as_owner: Client, as_other: Client, owner: User, rows: Rows, other_rows: Rows
) -> None:
    url = _url("cancel", rows.task.pk)
    checked = Client(enforce_csrf_checks=True)
    checked.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    assert as_owner.get(url).status_code == 405
    assert checked.post(url).status_code == 403
    assert as_other.post(url).status_code == 404
    assert as_owner.post(_url("cancel", "no-id")).status_code == 404
    rows.task.refresh_from_db()
    assert rows.task.state == TaskState.INPUT_REQUIRED


def test_a_task_is_changed_by_nothing_else(as_superuser: Client, rows: Rows) -> None:
    assert as_superuser.post(_url("change", rows.task.pk), {"state": "completed"}).status_code == 403
    assert as_superuser.post(_url("delete", rows.task.pk), {"post": "yes"}).status_code == 403


@pytest.mark.parametrize(
    ("part", "text", "note"),
    [
        ({"text": "hi"}, "hi", ""),
        ({"data": {"a": [1]}}, '{\n  "a": [\n    1\n  ]\n}', ""),
        ({"raw": "AAAA", "filename": "a.png", "mediaType": "image/png"}, "3 bytes", "a.png · image/png"),
        ({"raw": "AAAA"}, "3 bytes", "file"),
        ({"url": "https://example.com/a"}, "https://example.com/a", "file"),
        ("odd", '"odd"', ""),
    ],
)
def test_parts(part: Any, text: str, note: str) -> None:
    shown = part_shown(part)
    assert (shown["text"], shown["note"]) == (text, note)


def test_odd_rows_are_shown_as_they_are() -> None:
    assert message_shown("odd")["parts"][0]["text"] == '"odd"'
    assert message_shown({"role": "ROLE_AGENT", "parts": "none"}) == {"speaker": "Assistant", "own": True, "parts": []}
    assert artifact_shown("a", [1])["parts"][0]["text"] == "[\n  1\n]"
    assert event_shown({"odd": 1}) == {"title": "event", "text": "", "payload": '{\n  "odd": 1\n}'}
    update = {"artifactUpdate": {"artifact": {"artifactId": "response", "parts": [{"text": "x"}]}, "append": True}}
    assert event_shown(update)["title"] == "response +"

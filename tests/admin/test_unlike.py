"""“Not like this” on a task that was done without a review, and decisions that the owner reverses."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import NoReverseMatch, reverse

from a2a_server.models import Task, TaskState
from tests.admin.conftest import LoginAs, Rows, admin_url, make_review, make_task, wire_message
from trust.learning.services import draft_approve
from trust.models import AuditEntry, Caller, Grant, Observation, SkillDraft
from trust.services import grant_add
from volcanic.admin import base
from volcanic.models import Notification
from volcanic.services import notification_create

BUTTON = "Not like this: take the grant back"


@pytest.fixture
def alone(rows: Rows) -> Task:
    """A task that was done on the learned skill of the rows' draft, without the owner."""
    skill = draft_approve(draft=rows.draft, version=rows.draft.version)
    history = [wire_message("ROLE_USER", "olivias request"), wire_message("ROLE_AGENT", "Done.")]
    return make_task(rows, state=TaskState.COMPLETED, skill=skill.slug, attempt=1, history=history)


def _page(client: Client, task: Task) -> str:
    return client.get(admin_url(Task, "change", task.pk)).content.decode()


def _post(client: Client, task: Task, text: str = "") -> str:
    url = reverse("admin:a2a_server_task_unlike", args=[task.pk])
    return str(client.post(url, {"text": text}, follow=True).content.decode())


def test_the_grant_is_taken_back_with_the_owners_words(as_owner: Client, rows: Rows, alone: Task) -> None:
    assert BUTTON in _page(as_owner, alone)
    told = _post(as_owner, alone, "Append,\r\ndon't replace.")
    assert f"{alone.skill} is no longer granted to olivias-bot." in told
    assert BUTTON not in told
    assert not Grant.objects.filter(caller=rows.caller, skill__slug=alone.skill).exists()
    observation = Observation.objects.get(decision="unlike")
    assert (observation.task, observation.request) == (alone.pk, "olivias request")
    assert observation.edits == "Append,\ndon't replace."
    rows.draft.refresh_from_db()
    assert rows.draft.state == "open"
    assert "Append, don't replace." in rows.draft.instructions  # quoted on a line
    assert AuditEntry.objects.get(action="review.unlike").actor == "owner olivia"
    page = as_owner.get(admin_url(Caller, "change", rows.caller.pk)).content.decode()
    assert "Grant taken back" in page
    assert "This task ran on no grant that could be taken back." in _post(as_owner, alone)


def test_plain_chat_is_a_grant_too(as_owner: Client, rows: Rows) -> None:
    assert BUTTON not in _page(as_owner, make_task(rows, state=TaskState.FAILED, attempt=1))
    grant_add(caller=rows.caller, slug="chat")
    task = make_task(rows, state=TaskState.FAILED, attempt=1)
    assert BUTTON in _page(as_owner, task)
    assert "chat is no longer granted to olivias-bot." in _post(as_owner, task)


def test_what_the_owner_decided_or_did_not_run_has_no_such_button(as_owner: Client, rows: Rows) -> None:
    grant_add(caller=rows.caller, slug="chat")
    reviewed = make_task(rows, state=TaskState.COMPLETED, attempt=1)
    make_review(rows.caller, reviewed)
    for task in (
        reviewed,
        make_task(rows, state=TaskState.INPUT_REQUIRED, attempt=1),
        make_task(rows, state=TaskState.REJECTED, attempt=1),
        make_task(rows, state=TaskState.COMPLETED, attempt=0),
    ):
        assert BUTTON not in _page(as_owner, task)
        assert "This task ran on no grant that could be taken back." in _post(as_owner, task)
    assert Grant.objects.filter(caller=rows.caller, skill__slug="chat").exists()


def test_words_that_are_too_many(as_owner: Client, alone: Task) -> None:
    assert "at most 2000 characters" in _post(as_owner, alone, "x" * 2001)
    assert BUTTON in _page(as_owner, alone)


def test_it_is_the_owners_by_post_with_a_csrf_token(
    as_owner: Client, as_other: Client, other_rows: Rows, login_as: LoginAs, owner: User, alone: Task
) -> None:
    url = reverse("admin:a2a_server_task_unlike", args=[alone.pk])
    checked = Client(enforce_csrf_checks=True)
    checked.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    assert as_owner.get(url).status_code == 405
    assert checked.post(url).status_code == 403
    assert as_other.post(url).status_code == 404
    assert Client().post(url).status_code == 302
    assert BUTTON in _page(as_owner, alone)


def test_a_report_leads_to_its_task(as_owner: Client, rows: Rows, alone: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    report = notification_create(
        workspace_id=rows.workspace.pk,
        session_id=None,
        text="It was done.",
        kind=Notification.Kind.REPORT,
        task=alone.pk,
    )
    url = admin_url(Notification, "change", report.pk)
    link = f'<a href="{admin_url(Task, "change", alone.pk)}">'
    assert link in as_owner.get(url).content.decode()
    assert link not in as_owner.get(admin_url(Notification, "change", rows.notification.pk)).content.decode()

    def no_such_page(name: str, args: object = None) -> str:
        raise NoReverseMatch

    monkeypatch.setattr(base, "reverse", no_such_page)
    text = as_owner.get(url).content.decode()
    assert str(alone.pk) in text
    assert link not in text


def test_decisions_are_taken_back(as_owner: Client, as_other: Client, rows: Rows, other_rows: Rows) -> None:
    chosen = {"action": "take_back", "_selected_action": [rows.observation.pk]}
    as_other.post(admin_url(Observation, "changelist"), chosen)
    rows.draft.refresh_from_db()
    assert rows.draft.state == "open"
    response = as_owner.post(admin_url(Observation, "changelist"), chosen, follow=True)
    assert "Taken back: 1." in response.content.decode()
    rows.draft.refresh_from_db()
    assert rows.draft.state == "withdrawn"
    text = as_owner.get(admin_url(SkillDraft, "change", rows.draft.pk)).content.decode()
    assert "A decision that the draft rested on was taken back." in text
    assert "(taken back)" in text
    response = as_owner.post(admin_url(Observation, "changelist"), chosen, follow=True)
    assert "Taken back: 0." in response.content.decode()

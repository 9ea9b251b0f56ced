"""Wording of the admin: the same names everywhere, one format of times, no false statements."""

from datetime import UTC, datetime
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.test import Client

from a2a_server.models import PushConfig
from tests.admin.conftest import OWNED, Rows, admin_url
from tests.admin.pages import form_of
from trust.models import CallerIdentity, Grant, Observation, Skill, SkillDraft
from volcanic.models import Memory, Notification, NotificationDelivery, Workspace


def _page(client: Client, model: type[Any], page: str, *args: Any) -> str:
    return client.get(admin_url(model, page, *args)).content.decode()


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (PushConfig, "webhooks"),
        (Observation, "decisions"),
        (SkillDraft, "drafts"),
        (NotificationDelivery, "deliveries"),
        (CallerIdentity, "identities"),
    ],
)
def test_a_list_has_the_name_of_the_menu(model: type[Any], name: str, as_owner: Client, workspace: Workspace) -> None:
    page = _page(as_owner, model, "changelist")
    assert f"No {name} yet" in page
    assert name.capitalize() in page


def test_failed_logins_have_the_name_of_the_menu(as_superuser: Client) -> None:
    page = _page(as_superuser, AccessAttempt, "changelist")
    assert "No failed logins yet" in page
    assert "ccess attempts" not in page + as_superuser.get("/admin/").content.decode()


@pytest.mark.parametrize("model", OWNED)
def test_no_page_offers_a_history_that_is_empty(model: type[Any], as_owner: Client, rows: Rows) -> None:
    row = rows.row_of(model)
    assert f'href="{admin_url(model, "history", row.pk)}"' not in _page(as_owner, model, "change", row.pk)


@pytest.mark.parametrize("model", OWNED)
def test_times_are_written_in_one_way(model: type[Any], as_owner: Client, rows: Rows) -> None:
    row = rows.row_of(model)
    for page in (_page(as_owner, model, "changelist"), _page(as_owner, model, "change", row.pk)):
        assert "a.m." not in page
        assert "p.m." not in page
        assert "(&#x27;" not in page  # a tuple


def test_whose_a_memory_is(as_owner: Client, rows: Rows) -> None:
    page = _page(as_owner, Memory, "change", rows.memory.pk)
    assert "caller olivias-bot" in page
    assert "(&#x27;caller&#x27;" not in page


def test_a_grants_own_level(as_owner: Client, rows: Rows) -> None:
    assert "as the caller&#x27;s" in _page(as_owner, Grant, "change", rows.grant.pk)


@pytest.mark.parametrize("model", [Grant, CallerIdentity, Workspace])
def test_what_is_not_there_yet_has_no_time(model: type[Any], as_superuser: Client, rows: Rows) -> None:
    assert "Created at" not in _page(as_superuser, model, "add")
    assert "Created at" in _page(as_superuser, model, "change", rows.row_of(model).pk)


def test_a_notification_is_read_by_a_button(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    page, button = (admin_url(Notification, name, rows.notification.pk) for name in ("change", "mark_read"))
    assert button in as_owner.get(page).content.decode()
    assert Notification.objects.filter(pk=rows.notification.pk, read_at=None).exists()
    assert as_owner.post(button).status_code == 302
    assert not Notification.objects.filter(pk=rows.notification.pk, read_at=None).exists()
    assert button not in as_owner.get(page).content.decode()
    assert as_owner.post(admin_url(Notification, "mark_read", other_rows.notification.pk)).status_code == 404


@pytest.mark.parametrize("model", [Notification, NotificationDelivery, Memory])
def test_no_caller_turns_our_words_around(model: type[Any], as_owner: Client, rows: Rows) -> None:
    model.objects.update(text="Asked: \u202eevil\u2067 \u0627\u200f. Answered: no")
    row = rows.row_of(model)
    assert "Asked: evil \u0627\u200f. Answered" in _page(as_owner, model, "changelist")
    assert '<div class="volcanic-text volcanic-said" dir="auto">Asked:' in _page(as_owner, model, "change", row.pk)


def test_no_title_turns_our_words_around(rows: Rows) -> None:
    for row, field in (
        (rows.session, "title"),
        (rows.memory, "text"),
        (rows.notification, "text"),
        (rows.review, "summary"),
        (rows.observation, "request"),
        (rows.draft, "name"),
    ):
        setattr(row, field, "a\u202eb\u2066c")
        assert "abc" in str(row)


def test_a_list_says_whether_there_is_nothing_or_nothing_found(as_owner: Client, workspace: Workspace) -> None:
    assert "No memories yet" in _page(as_owner, Memory, "changelist")
    page = as_owner.get(admin_url(Memory, "changelist"), {"q": "nothing"}).content.decode()
    assert "Nothing found" in page
    assert "No memories yet" not in page


def test_a_skill_of_the_only_workspace(as_owner: Client, rows: Rows) -> None:
    url = admin_url(Skill, "add")
    form = form_of(as_owner, url, "skill_form")
    assert form["workspace"] == [str(rows.workspace.pk)]
    answer = as_owner.post(url, {**form, "slug": "Bad Slug!", "name": "x", "description": "x"}).content.decode()
    assert "Use words of a-z and 0-9" in answer
    assert "Enter a valid value" not in answer


def test_a_skill_of_one_of_several_workspaces(as_superuser: Client, rows: Rows, other_rows: Rows) -> None:
    assert form_of(as_superuser, admin_url(Skill, "add"), "skill_form").get("workspace", [""]) == [""]


def test_built_in_skills_are_not_deleted(as_owner: Client, rows: Rows) -> None:
    chat = Skill.objects.get(slug="chat")
    chosen = {"action": "delete_selected", "_selected_action": [chat.pk]}
    assert "Built-in skills stay" in as_owner.post(admin_url(Skill, "changelist"), chosen, follow=True).content.decode()
    chosen |= {"_selected_action": [chat.pk, rows.skill.pk], "post": "yes"}
    as_owner.post(admin_url(Skill, "changelist"), chosen)
    assert list(Skill.objects.filter(pk__in=[chat.pk, rows.skill.pk])) == [chat]


def test_declining_several_shows_their_files(as_owner: Client, rows: Rows) -> None:
    type(rows.review).objects.update(files=["bill.pdf (application/pdf)"])
    chosen = {"action": "decline", "_selected_action": [rows.review.pk]}
    page = as_owner.post(admin_url(type(rows.review), "changelist"), chosen).content.decode()
    assert "File: <bdi>bill.pdf (application/pdf)</bdi>" in page


def test_who_is_locked_out_is_told_for_how_long(client: Client, owner: User) -> None:
    form = {"username": "olivia", "password": "wrong"}
    for _ in range(5):
        answer = client.post("/admin/login/", form)
    page = " ".join(answer.content.decode().split())
    assert "Try again in 15 minutes" in page
    assert 'href="/admin/"' in page


def test_a_moment_is_the_same_everywhere(as_owner: Client, rows: Rows) -> None:
    Memory.objects.update(created_at=datetime(2026, 3, 4, 5, 6, tzinfo=UTC))
    for page in (_page(as_owner, Memory, "changelist"), _page(as_owner, Memory, "change", rows.memory.pk)):
        assert "2026-03-04 05:06" in page

"""Two pages of one row: the one that is saved last undoes nothing that was done in the meantime."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.test import Client

from tests.admin.conftest import Rows, admin_url
from tests.admin.pages import form_of
from trust.models import AuditEntry, Caller, Level, Skill
from trust.services import caller_set_enabled, caller_set_level, caller_set_limits, caller_update, skill_update
from volcanic.admin.forms import CHANGED_MEANWHILE
from volcanic.models import Workspace


def _caller_url(rows: Rows) -> str:
    return admin_url(Caller, "change", rows.caller.pk)


def _caller_form(client: Client, rows: Rows) -> dict[str, Any]:
    return form_of(client, _caller_url(rows), "caller_form")


def _skill_url(rows: Rows) -> str:
    return admin_url(Skill, "change", rows.skill.pk)


def _lower(rows: Rows) -> None:
    """What the owner does elsewhere, while the first page is open."""
    caller_set_level(caller=rows.caller, level=Level.OBSERVE)
    caller_set_enabled(caller=rows.caller, enabled=False)
    caller_set_limits(caller=rows.caller, max_running_tasks=1)


def test_a_stale_page_of_a_caller_lifts_nothing(as_owner: Client, rows: Rows) -> None:
    stale = _caller_form(as_owner, rows)
    assert (stale["level"], stale["enabled"], stale["max_running_tasks"]) == (["act"], ["on"], [""])
    _lower(rows)
    before = AuditEntry.objects.count()
    saved = as_owner.post(_caller_url(rows), {**stale, "note": "met in Lyon", "requests_per_minute": "9"})
    assert saved.status_code == 302
    now = Caller.objects.get(pk=rows.caller.pk)
    assert (now.level, now.enabled, now.max_running_tasks) == (Level.OBSERVE, False, 1)
    assert (now.note, now.requests_per_minute) == ("met in Lyon", 9)
    assert AuditEntry.objects.count() == before + 1  # the limit
    assert LogEntry.objects.latest("id").get_change_message() == "Changed Note and Requests per minute."


@pytest.mark.parametrize(
    ("changed", "field"),
    [({"level": "learn"}, "level"), ({"enabled": []}, "enabled"), ({"max_running_tasks": "5"}, "max_running_tasks")],
)
def test_what_both_changed_is_refused(as_owner: Client, rows: Rows, changed: dict[str, Any], field: str) -> None:
    """At its field, with nothing written, and however often it is sent."""
    stale = {**_caller_form(as_owner, rows), "note": "new", **changed}
    _lower(rows)
    for _ in range(2):
        refused = as_owner.post(_caller_url(rows), stale)
        assert refused.context["adminform"].form.errors == {field: [CHANGED_MEANWHILE]}
    now = Caller.objects.get(pk=rows.caller.pk)
    assert (now.level, now.enabled, now.max_running_tasks) == (Level.OBSERVE, False, 1)
    assert now.note == rows.caller.note
    fresh = {**_caller_form(as_owner, rows), **changed}
    assert as_owner.post(_caller_url(rows), fresh).status_code == 302


def test_texts_are_compared_whatever_ends_their_lines(as_owner: Client, rows: Rows) -> None:
    caller_update(caller=rows.caller, level=Level.ACT, note="one\ntwo\n")
    stale = _caller_form(as_owner, rows)
    assert as_owner.post(_caller_url(rows), {**stale, "requests_per_minute": "9"}).status_code == 302
    assert Caller.objects.get(pk=rows.caller.pk).note == "one\ntwo\n"
    assert as_owner.post(_caller_url(rows), {**stale, "note": "three"}).status_code == 302
    assert Caller.objects.get(pk=rows.caller.pk).note == "three"
    refused = as_owner.post(_caller_url(rows), {**stale, "note": "four"})
    assert refused.context["adminform"].form.errors == {"note": [CHANGED_MEANWHILE]}


def test_a_shown_value_that_was_made_up_is_refused(as_owner: Client, rows: Rows) -> None:
    form = {**_caller_form(as_owner, rows), "initial-max_running_tasks": "x", "max_running_tasks": "5"}
    refused = as_owner.post(_caller_url(rows), form)
    assert refused.context["adminform"].form.errors == {"max_running_tasks": [CHANGED_MEANWHILE]}


def test_a_stale_page_of_a_skill_gives_no_tools_back(as_owner: Client, rows: Rows) -> None:
    """Nor does it advertise or enable it again; an emptied list stays empty."""
    skill_update(skill=rows.skill, tags=["old"], examples=["a request\nof two lines", "another"])
    stale = form_of(as_owner, _skill_url(rows), "skill_form")
    assert (stale["tools_of_chat"], stale["enabled"], stale["advertised"]) == (["on"], ["on"], ["on"])
    skill_update(skill=rows.skill, tools=["recall"], advertised=False, enabled=False, tags=[])
    saved = as_owner.post(_skill_url(rows), {**stale, "name": "Renamed", "examples": "a request of two lines"})
    assert saved.status_code == 302
    now = Skill.objects.get(pk=rows.skill.pk)
    assert (now.tools, now.advertised, now.enabled, now.tags) == (["recall"], False, False, [])
    assert (now.name, now.examples) == ("Renamed", ["a request\nof two lines"])


def test_tools_that_both_changed_are_refused(as_owner: Client, rows: Rows) -> None:
    skill_update(skill=rows.skill, tools=["recall", "request_input"])
    stale = form_of(as_owner, _skill_url(rows), "skill_form")
    assert stale["tools"] == ["recall", "request_input"]
    skill_update(skill=rows.skill, tools=["recall"])
    refused = as_owner.post(_skill_url(rows), {**stale, "tools": [], "tools_of_chat": "on"})
    assert refused.context["adminform"].form.errors == {"tools": [CHANGED_MEANWHILE]}
    assert Skill.objects.get(pk=rows.skill.pk).tools == ["recall"]


def test_a_stale_page_of_a_workspace_undoes_nothing(as_owner: Client, rows: Rows) -> None:
    url = admin_url(Workspace, "change", rows.workspace.pk)
    stale = form_of(as_owner, url, "workspace_form")
    Workspace.objects.filter(pk=rows.workspace.pk).update(notify_owner=not rows.workspace.notify_owner)
    assert as_owner.post(url, {**stale, "card_name": "Olivia's"}).status_code == 302
    now = Workspace.objects.get(pk=rows.workspace.pk)
    assert (now.card_name, now.notify_owner) == ("Olivia's", not rows.workspace.notify_owner)
    refused = as_owner.post(url, {**stale, "card_name": "Another"})
    assert refused.context["adminform"].form.errors == {"card_name": [CHANGED_MEANWHILE]}


def test_a_stale_page_of_a_user_lets_nobody_back_in(as_superuser: Client, rows: Rows) -> None:
    url = admin_url(User, "change", rows.workspace.owner_id)
    stale = form_of(as_superuser, url, "user_form")
    User.objects.filter(pk=rows.workspace.owner_id).update(is_active=False)
    assert as_superuser.post(url, {**stale, "email": "new@example.com"}).status_code == 302
    now = User.objects.get(pk=rows.workspace.owner_id)
    assert (now.email, now.is_active) == ("new@example.com", False)


def test_a_users_page_shows_no_hash(as_superuser: Client, rows: Rows) -> None:
    page = as_superuser.get(admin_url(User, "change", rows.workspace.owner_id)).content.decode()
    assert rows.workspace.owner.password not in page
    assert "initial-email" in page
    assert "initial-password" not in page


def test_a_stale_page_of_a_user_keeps_what_groups_were_added(as_superuser: Client, rows: Rows) -> None:
    url = admin_url(User, "change", rows.workspace.owner_id)
    stale = form_of(as_superuser, url, "user_form")
    group = Group.objects.create(name="gardeners")
    rows.workspace.owner.groups.add(group)
    assert as_superuser.post(url, {**stale, "email": "new@example.com"}).status_code == 302
    assert list(rows.workspace.owner.groups.all()) == [group]

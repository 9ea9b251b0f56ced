"""The callers' screen: a key is shown once, and keys and grants change by POST only."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as BrowserSession
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.admin.conftest import LoginAs, Rows
from tests.conftest import Keyed
from trust.keys import key_digest
from trust.models import Caller, CallerKey, Grant, Skill
from trust.selectors import caller_by_key_digest

KEY = re.compile(r"vk_[A-Za-z0-9_-]{43}")


def _keys_in(text: str) -> set[str]:
    return set(KEY.findall(text))


def _url(name: str, *args: object) -> str:
    return reverse(f"admin:trust_caller_{name}", args=args)


def _lets_in(key: str) -> bool:
    return caller_by_key_digest(key_digest(key)) is not None


def _add(client: Client, rows: Rows, **values: object) -> str:
    chat = Skill.objects.get(slug="chat", workspace=None)
    form = {"workspace": rows.workspace.pk, "name": "new-bot", "level": "act", "skills": [chat.pk], "note": "n"}
    response = client.post(_url("add"), {**form, **values})
    assert response.status_code == 200, response
    return response.content.decode()


def test_adding_shows_the_key_once(as_owner: Client, rows: Rows, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        text = _add(as_owner, rows)
    (key,) = _keys_in(text)
    assert _lets_in(key)
    caller = Caller.objects.get(name="new-bot")
    assert [grant.skill.slug for grant in Grant.objects.filter(caller=caller)] == ["chat"]
    assert key not in caplog.text
    # Nowhere else: not in a message, which Django keeps in a cookie or the session, and not in the admin's log.
    assert "messages" not in as_owner.cookies
    assert not [one for one in BrowserSession.objects.all() if key in str(one.get_decoded())]
    assert not [one for one in LogEntry.objects.all() if key in one.change_message + one.object_repr]
    for url in (_url("change", caller.pk), _url("history", caller.pk), _url("changelist"), reverse("admin:index")):
        page = as_owner.get(url)
        assert not _keys_in(page.content.decode()), url
    assert f"…{key[-4:]}" in as_owner.get(_url("change", caller.pk)).content.decode()


def test_the_page_with_the_key_is_not_cached(as_owner: Client, rows: Rows) -> None:
    response = as_owner.post(_url("rotate_key", rows.caller.pk), {"grace": "0"})
    assert "no-store" in response["Cache-Control"]
    assert "Location" not in response


def test_adding_a_taken_or_bad_name_shows_the_form_again(as_owner: Client, rows: Rows) -> None:
    assert "already exists" in _add(as_owner, rows, name=rows.caller.name)
    assert "Use a-z" in _add(as_owner, rows, name="Not A Name")
    assert "Select a valid choice" in _add(as_owner, rows, level="boss")
    assert Caller.objects.count() == 1


def test_adding_tells_why_it_was_refused(as_owner: Client, rows: Rows) -> None:
    """A name that is reserved is another matter than one that a second click finds taken."""
    form = {"workspace": rows.workspace.pk, "level": "observe"}
    page = as_owner.post(_url("add"), {**form, "name": "a2a"}, follow=True).content.decode()
    assert "&#x27;a2a&#x27; is taken: the assistant keeps files of its own under that name." in page
    assert "There is a caller with this name already" not in page
    assert Caller.objects.count() == 1


def test_adding_takes_own_workspaces_and_skills_only(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    assert "Select a valid choice" in _add(as_owner, rows, workspace=other_rows.workspace.pk)
    assert "Select a valid choice" in _add(as_owner, rows, skills=[other_rows.skill.pk])
    assert not Caller.objects.filter(name="new-bot").exists()


def test_a_superuser_cannot_mix_workspaces(as_superuser: Client, rows: Rows, other_rows: Rows) -> None:
    assert "does not have these skills" in _add(as_superuser, rows, skills=[other_rows.skill.pk])
    assert not Caller.objects.filter(name="new-bot").exists()


def test_saving_changes_what_may_change(as_owner: Client, rows: Rows) -> None:
    values = {"name": "renamed", "workspace": "", "level": "learn", "note": "met in Lyon"}
    response = as_owner.post(_url("change", rows.caller.pk), values)  # an unticked box is not sent
    assert response.status_code == 302
    caller = Caller.objects.get(pk=rows.caller.pk)
    assert (caller.name, caller.level, caller.note) == (rows.caller.name, "learn", "met in Lyon")
    assert caller.enabled is False
    assert not _lets_in(rows.api_key)


def test_rotating_ends_the_old_key_at_once(as_owner: Client, rows: Rows) -> None:
    response = as_owner.post(_url("rotate_key", rows.caller.pk), {"grace": "0"})
    (key,) = _keys_in(response.content.decode())
    assert _lets_in(key)
    assert not _lets_in(rows.api_key)
    assert not [one for one in LogEntry.objects.all() if key in one.change_message]


def test_rotating_with_grace_keeps_the_old_key_a_while(as_owner: Client, rows: Rows) -> None:
    response = as_owner.post(_url("rotate_key", rows.caller.pk), {"grace": "3600"})
    (key,) = _keys_in(response.content.decode())
    assert _lets_in(key)
    assert _lets_in(rows.api_key)
    rows.key.refresh_from_db()
    assert rows.key.expires_at is not None
    assert timedelta(minutes=59) < rows.key.expires_at - timezone.now() <= timedelta(hours=1)
    assert "1 hour" in LogEntry.objects.latest("id").get_change_message()


def test_rotating_with_a_grace_of_no_choice_changes_nothing(as_owner: Client, rows: Rows) -> None:
    assert as_owner.post(_url("rotate_key", rows.caller.pk), {"grace": "-1"}).status_code == 302
    assert CallerKey.objects.count() == 1


def test_revoking_a_key(as_owner: Client, rows: Rows) -> None:
    url = _url("revoke_key", rows.caller.pk, rows.key.pk)
    assert as_owner.post(url).status_code == 302
    assert not _lets_in(rows.api_key)
    text = as_owner.get(_url("change", rows.caller.pk)).content.decode()
    assert "no longer works" in text
    assert "revoked" in text
    as_owner.post(url)
    assert "was revoked before" in as_owner.get(_url("change", rows.caller.pk)).content.decode()


def test_a_key_is_revoked_through_its_own_caller_only(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    assert as_owner.post(_url("revoke_key", rows.caller.pk, other_rows.key.pk)).status_code == 404
    assert _lets_in(other_rows.api_key)


def test_granting_and_revoking(as_owner: Client, rows: Rows) -> None:
    as_owner.post(_url("grant", rows.caller.pk), {"slug": "chat"})
    as_owner.post(_url("grant", rows.caller.pk), {"slug": "chat"})
    assert {grant.skill.slug for grant in Grant.objects.filter(caller=rows.caller)} == {"chat", rows.skill.slug}
    as_owner.post(_url("revoke_grant", rows.caller.pk), {"slug": rows.skill.slug})
    assert {grant.skill.slug for grant in Grant.objects.filter(caller=rows.caller)} == {"chat"}
    history = as_owner.get(_url("history", rows.caller.pk)).content.decode()
    assert "Granted chat." in history
    assert f"Revoked the grant of {rows.skill.slug}." in history


def test_granting_another_workspaces_skill_is_refused(as_superuser: Client, rows: Rows, other_rows: Rows) -> None:
    as_superuser.post(_url("grant", rows.caller.pk), {"slug": other_rows.skill.slug})
    assert "There is no skill" in as_superuser.get(_url("change", rows.caller.pk)).content.decode()
    assert Grant.objects.filter(caller=rows.caller).count() == 1


def test_selected_callers_are_disabled_and_enabled(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    chosen = {"_selected_action": [rows.caller.pk, other_rows.caller.pk]}
    as_owner.post(_url("changelist"), {"action": "disable", **chosen})
    assert not _lets_in(rows.api_key)
    assert _lets_in(other_rows.api_key)
    as_owner.post(_url("changelist"), {"action": "enable", **chosen})
    assert _lets_in(rows.api_key)


BUTTONS = ["rotate_key", "revoke_key", "grant", "revoke_grant"]


def _button(name: str, rows: Rows) -> str:
    return _url(name, rows.caller.pk, *([rows.key.pk] if name == "revoke_key" else []))


@pytest.mark.parametrize("name", BUTTONS)
def test_buttons_take_post_with_a_csrf_token_only(
    name: str, as_owner: Client, owner: User, rows: Rows, db: None
) -> None:
    assert as_owner.get(_button(name, rows)).status_code == 405
    checked = Client(enforce_csrf_checks=True)
    checked.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    assert checked.post(_button(name, rows), {"slug": "chat", "grace": "0"}).status_code == 403
    assert _lets_in(rows.api_key)
    assert CallerKey.objects.count() == 1
    assert Grant.objects.count() == 1


@pytest.mark.parametrize("name", BUTTONS)
def test_buttons_work_on_own_callers_only(
    name: str, as_other: Client, rows: Rows, other_rows: Rows, login_as: LoginAs, staff_without_workspace: User
) -> None:
    values = {"slug": rows.skill.slug, "grace": "0"}
    assert as_other.post(_button(name, rows), values).status_code == 404
    assert login_as(staff_without_workspace).post(_button(name, rows), values).status_code == 403
    assert Client().post(_button(name, rows), values).status_code == 302
    assert _lets_in(rows.api_key)
    assert CallerKey.objects.filter(caller=rows.caller).count() == 1
    assert Grant.objects.filter(caller=rows.caller).count() == 1


@pytest.mark.django_db
def test_the_owner_sets_a_callers_limits_in_the_admin(friend: Keyed, owner: User, settings: Settings) -> None:
    """Empty is the settings' number, which the page names; 0 is none."""
    client = Client()
    client.force_login(owner)
    url = reverse("admin:trust_caller_change", args=[friend.caller.pk])
    assert "Empty: REQUESTS_PER_MINUTE, 600. 0: no limit." in client.get(url).content.decode()
    form = {"level": "act", "enabled": "on", "note": "", "requests_per_minute": "5", "max_running_tasks": "0"}
    assert client.post(url, form).status_code == 302
    friend.caller.refresh_from_db()
    assert (friend.caller.requests_per_minute, friend.caller.max_running_tasks) == (5, 0)
    assert friend.caller.max_stored_tasks is None
    client.post(url, {**form, "requests_per_minute": "", "max_running_tasks": "-1"})
    friend.caller.refresh_from_db()
    assert friend.caller.requests_per_minute == 5  # the form was refused
    client.post(url, {**form, "requests_per_minute": ""})
    friend.caller.refresh_from_db()
    assert friend.caller.requests_per_minute is None

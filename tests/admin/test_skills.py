"""Skills and grants: built-in skills stay, own ones change, a grant fits its caller's workspace."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from tests.admin.conftest import Rows
from trust.models import AuditEntry, Grant, Skill


def _chat() -> Skill:
    return Skill.objects.get(slug="chat", workspace=None)


def _url(model: str, page: str, *args: object) -> str:
    return reverse(f"admin:trust_{model}_{page}", args=args)


def test_built_in_skills_are_shown_and_stay(as_owner: Client, as_superuser: Client, rows: Rows) -> None:
    assert "chat" in as_owner.get(_url("skill", "changelist")).content.decode()
    for client in (as_owner, as_superuser):
        assert client.get(_url("skill", "change", _chat().pk)).status_code == 200
        assert client.post(_url("skill", "change", _chat().pk), {"name": "x"}).status_code == 403
        assert client.get(_url("skill", "delete", _chat().pk)).status_code == 403
        chosen = {"action": "delete_selected", "_selected_action": [_chat().pk], "post": "yes"}
        assert client.post(_url("skill", "changelist"), chosen).status_code == 302
    assert _chat().name == "Chat"


def test_own_skills_are_added_changed_and_deleted(as_owner: Client, rows: Rows) -> None:
    values = {
        "workspace": rows.workspace.pk,
        "slug": "book-table",
        "name": "Book a table",
        "description": "Books.",
        "tags": "dining\n\n friends ",
        "examples": "",
        "enabled": "on",
    }
    assert as_owner.post(_url("skill", "add"), values).status_code == 302
    skill = Skill.objects.get(slug="book-table")
    assert (skill.tags, skill.examples) == (["dining", "friends"], [])
    assert "dining\nfriends" in as_owner.get(_url("skill", "change", skill.pk)).content.decode()
    changed = {**values, "slug": "other-id", "name": "Reserve", "tags": ""}
    assert as_owner.post(_url("skill", "change", skill.pk), changed).status_code == 302
    skill.refresh_from_db()
    assert (skill.slug, skill.name, skill.tags) == ("book-table", "Reserve", [])
    assert as_owner.post(_url("skill", "delete", skill.pk), {"post": "yes"}).status_code == 302
    assert not Skill.objects.filter(pk=skill.pk).exists()


def test_a_skill_needs_an_own_workspace_and_an_id_of_its_own(
    as_owner: Client, as_superuser: Client, rows: Rows, other_rows: Rows
) -> None:
    values = {"slug": "fine", "name": "x", "description": "x", "enabled": "on"}
    for client, wrong in (
        (as_owner, {"workspace": other_rows.workspace.pk}),
        (as_superuser, {"workspace": ""}),
        (as_owner, {"workspace": rows.workspace.pk, "slug": "chat"}),
    ):
        assert client.post(_url("skill", "add"), {**values, **wrong}).status_code == 200
    assert not Skill.objects.filter(slug="fine").exists()
    assert Skill.objects.filter(slug="chat").count() == 1


def test_grants_are_added_and_deleted(as_owner: Client, rows: Rows) -> None:
    values = {"caller": rows.caller.pk, "skill": _chat().pk}
    assert as_owner.post(_url("grant", "add"), values).status_code == 302
    grant = Grant.objects.get(caller=rows.caller, skill=_chat())
    assert as_owner.post(_url("grant", "delete", grant.pk), {"post": "yes"}).status_code == 302
    chosen = {"action": "delete_selected", "_selected_action": [rows.grant.pk], "post": "yes"}
    assert as_owner.post(_url("grant", "changelist"), chosen).status_code == 302
    assert not Grant.objects.exists()


def test_a_grant_fits_its_callers_workspace(
    as_owner: Client, as_superuser: Client, rows: Rows, other_rows: Rows
) -> None:
    for client in (as_owner, as_superuser):
        mixed = client.post(_url("grant", "add"), {"caller": rows.caller.pk, "skill": other_rows.skill.pk})
        assert mixed.status_code == 200
    foreign = as_owner.post(_url("grant", "add"), {"caller": other_rows.caller.pk, "skill": _chat().pk})
    assert foreign.status_code == 200
    assert Grant.objects.count() == 2


def _values(rows: Rows, **values: object) -> dict[str, object]:
    """Returns what the form sends for a new skill."""
    return {
        "workspace": rows.workspace.pk,
        "slug": "book-table",
        "name": "Book a table",
        "description": "Books.",
        "enabled": "on",
        "advertised": "on",
        "tools_of_chat": "on",
        **values,
    }


def test_a_skill_with_everything_is_audited(as_owner: Client, rows: Rows) -> None:
    values = _values(
        rows,
        aliases="reserve-table\nreserve",
        input_modes="text/plain",
        output_modes="text/csv\n*/*",
        instructions="Ask for the hour.",
        tools=["recall", "request_input"],
        tools_of_chat="",
        advertised="",
    )
    assert as_owner.post(_url("skill", "add"), values).status_code == 302
    skill = Skill.objects.get(slug="book-table")
    assert (skill.aliases, skill.input_modes, skill.output_modes) == (
        ["reserve-table", "reserve"],
        ["text/plain"],
        ["text/csv", "*/*"],
    )
    assert (skill.instructions, skill.tools, skill.advertised) == (
        "Ask for the hour.",
        ["recall", "request_input"],
        False,
    )
    assert (skill.kind, skill.handler) == (Skill.Kind.ASSISTANT, "")
    url = _url("skill", "change", skill.pk)
    assert as_owner.post(url, {**values, "name": "Reserve"}).status_code == 302
    assert as_owner.post(url, {**values, "name": "Reserve"}).status_code == 302
    assert as_owner.post(_url("skill", "delete", skill.pk), {"post": "yes"}).status_code == 302
    lines = AuditEntry.objects.filter(subject="book-table", workspace_id=rows.workspace.pk).order_by("id")
    assert [(line.action, line.reason) for line in lines][1:] == [("skill.changed", "name"), ("skill.deleted", "")]
    assert lines[0].action == "skill.created"


def test_tools_are_those_of_chat_or_chosen(as_owner: Client, rows: Rows) -> None:
    """Each says what it reads and changes; both at once is neither; none chosen is none."""
    url = _url("skill", "change", rows.skill.pk)
    page = as_owner.get(url).content.decode()
    assert "read_file: reads the workspace&#x27;s files" in page
    assert "request_input: asks the caller something" in page
    values = _values(rows)
    for sent, stored in (
        ({"tools": ["recall"], "tools_of_chat": ""}, ["recall"]),
        ({"tools": ["recall"]}, ["recall"]),  # refused
        ({}, None),
        ({"tools_of_chat": ""}, []),
        ({"tools": ["no_such_tool"], "tools_of_chat": ""}, []),  # refused
        ({}, None),
    ):
        as_owner.post(url, {**values, **sent})
        rows.skill.refresh_from_db()
        assert rows.skill.tools == stored, sent


def test_a_handler_is_chosen_only_of_those_offered(as_owner: Client, rows: Rows, settings: Settings) -> None:
    url, path = _url("skill", "change", rows.skill.pk), "tests.trust.test_handlers.fine"
    values = _values(rows, handler=path)
    assert "Answered by" not in as_owner.get(_url("skill", "add")).content.decode()
    assert as_owner.post(url, values).status_code == 302  # the form has no such field
    rows.skill.refresh_from_db()
    assert (rows.skill.kind, rows.skill.handler) == (Skill.Kind.ASSISTANT, "")
    settings.SKILL_HANDLERS = [path]
    assert path in as_owner.get(url).content.decode()
    assert as_owner.post(url, {**values, "handler": "os.system"}).status_code == 200
    assert as_owner.post(url, values).status_code == 302
    rows.skill.refresh_from_db()
    assert (rows.skill.kind, rows.skill.handler) == (Skill.Kind.HANDLER, path)
    # The operator takes it off the list: it is told, and can be replaced.
    settings.SKILL_HANDLERS = []
    assert "not offered any more" in as_owner.get(url).content.decode()
    refused = as_owner.post(url, {**values, "name": "x"})
    assert "The operator does not offer this handler." in refused.content.decode()
    assert as_owner.post(url, {**values, "handler": ""}).status_code == 302
    rows.skill.refresh_from_db()
    assert (rows.skill.kind, rows.skill.handler) == (Skill.Kind.ASSISTANT, "")


def test_what_services_refuse_is_shown_at_its_field(as_owner: Client, rows: Rows) -> None:
    for wrong, said in (
        ({"aliases": "chat"}, "chat: the skill chat has this id or alias."),
        ({"aliases": "Book it"}, "Book it: Use words of a-z and 0-9"),
        ({"input_modes": "text"}, "text is not a media type"),
        ({"slug": "a--b"}, "Use words of a-z and 0-9"),
        ({"slug": "chat"}, "The skill chat has this id or alias."),
        ({"slug": rows.skill.slug}, "already exists"),
        ({"description": "x" * 2001}, "At most 2,000 characters."),
    ):
        refused = as_owner.post(_url("skill", "add"), _values(rows, **wrong))
        assert refused.status_code == 200
        assert said in refused.content.decode()
    assert set(Skill.objects.exclude(workspace=None)) == {rows.skill}
    # What can't be changed can still be wrong, when something built in has taken the id since.
    Skill.objects.filter(pk=rows.skill.pk).update(slug="notify-user")
    refused = as_owner.post(_url("skill", "change", rows.skill.pk), _values(rows))
    assert "The skill notify-user has this id or alias." in refused.content.decode()


def test_selected_skills_are_enabled_and_disabled(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    """Own ones only."""
    chosen = [rows.skill.pk, other_rows.skill.pk, _chat().pk]
    for action, enabled in (("disable", False), ("disable", False), ("enable", True)):
        done = as_owner.post(_url("skill", "changelist"), {"action": action, "_selected_action": chosen}, follow=True)
        assert "Built-in skills stay as they are." in done.content.decode()
        rows.skill.refresh_from_db()
        assert rows.skill.enabled is enabled
        assert Skill.objects.filter(enabled=True).exclude(pk=rows.skill.pk).count() == 4
    assert [line.action for line in AuditEntry.objects.filter(subject=rows.skill.slug).order_by("id")][-2:] == [
        "skill.disabled",
        "skill.enabled",
    ]


def test_selected_skills_are_deleted_with_their_grants(as_owner: Client, rows: Rows) -> None:
    chosen = {"action": "delete_selected", "_selected_action": [rows.skill.pk], "post": "yes"}
    assert as_owner.post(_url("skill", "changelist"), chosen).status_code == 302
    assert not Grant.objects.filter(pk=rows.grant.pk).exists()
    actions = AuditEntry.objects.filter(subject=rows.skill.slug).values_list("action", flat=True)
    assert {"grant.revoked", "skill.deleted"} <= set(actions)


def test_what_was_done_meanwhile_is_told_on_the_list(
    as_owner: Client, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form was in order when it was checked, and its skill is gone when it is to be written."""

    def check(skill: Skill) -> None:
        Skill.objects.filter(pk=skill.pk).delete()

    monkeypatch.setattr("trust.admin.skill_forms.skill_check", check)
    told = as_owner.post(_url("skill", "change", rows.skill.pk), _values(rows, name="x"), follow=True)
    assert "The skill is gone." in told.content.decode()

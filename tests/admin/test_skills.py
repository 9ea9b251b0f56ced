"""Skills and grants: built-in skills stay, own ones change, a grant fits its caller's workspace."""

from django.test import Client
from django.urls import reverse

from tests.admin.conftest import Rows
from trust.models import Grant, Skill


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
        assert client.post(_url("skill", "changelist"), chosen).status_code == 403
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

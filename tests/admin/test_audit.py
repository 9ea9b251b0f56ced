"""The audit's screen, which only shows, and what a caller's page shows of it."""

import pytest
from django.test import Client
from django.urls import reverse

from tests.admin.conftest import Rows, admin_url
from trust.audit import audit
from trust.models import AuditEntry, Level
from trust.services import caller_set_level
from volcanic.acting import acting_as

LIST = reverse("admin:trust_auditentry_changelist")


def _listed(client: Client, **query: str | int) -> str:
    response = client.get(LIST, query)
    assert response.status_code == 200
    text = response.content.decode()
    start = text.find('id="result_list"')
    return "" if start < 0 else text[start : text.index("</table>", start)]


def test_the_newest_line_comes_first(as_owner: Client, rows: Rows) -> None:
    text = _listed(as_owner)
    assert 0 < text.index("identity.added") < text.index("caller.created")


def test_lines_are_found_by_action_caller_and_actor(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    with acting_as("owner vera", "request-77"):
        caller_set_level(caller=rows.caller, level=Level.LEARN, reason="a reason to find")
    audit("test.elsewhere", workspace_id=rows.workspace.pk)
    for query in (
        {"action": "caller.level"},
        {"actor": "owner vera"},
        {"q": "reason to find"},
        {"q": "request-77"},
    ):
        text = _listed(as_owner, **query)
        assert "act → learn" in text, query
        assert "key.created" not in text, query
    text = _listed(as_owner, caller_id=rows.caller.pk)
    assert "key.created" in text
    assert "test.elsewhere" not in text
    assert _listed(as_owner, caller_id=other_rows.caller.pk) == ""
    assert _listed(as_owner, caller_id="²") == ""


def test_filters_offer_what_the_visitor_may_see(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    with acting_as("owner oscar"):
        audit("test.secret", caller=other_rows.caller)
    text = as_owner.get(LIST).content.decode()
    assert rows.caller.name in text
    for hidden in ("owner oscar", "test.secret", other_rows.caller.name):
        assert hidden not in text


def test_lines_of_no_workspace_are_superusers(as_owner: Client, as_superuser: Client, rows: Rows) -> None:
    audit("test.everywhere")
    entry = AuditEntry.objects.latest("id")
    assert "test.everywhere" not in _listed(as_owner)
    assert as_owner.get(admin_url(AuditEntry, "change", entry.pk)).status_code == 404
    assert "test.everywhere" in _listed(as_superuser)
    assert as_superuser.get(admin_url(AuditEntry, "change", entry.pk)).status_code == 200


def test_lines_of_a_workspace_that_is_gone_are_superusers(as_superuser: Client, rows: Rows) -> None:
    entry = rows.row_of(AuditEntry)
    rows.caller.delete()
    rows.workspace.delete()
    assert "caller.created" in _listed(as_superuser)
    text = as_superuser.get(admin_url(AuditEntry, "change", entry.pk)).content.decode()
    assert rows.caller.name in text


@pytest.mark.parametrize("page", ["add", "change", "delete"])
def test_nobody_changes_a_line(as_owner: Client, as_superuser: Client, rows: Rows, page: str) -> None:
    entry = rows.row_of(AuditEntry)
    before = list(AuditEntry.objects.order_by("id").values())
    url = admin_url(AuditEntry, page, *([] if page == "add" else [entry.pk]))
    for client in (as_owner, as_superuser):
        assert client.post(url, {"actor": "nobody", "action": "x", "post": "yes"}).status_code == 403
        chosen = {"action": "delete_selected", "_selected_action": [entry.pk], "post": "yes"}
        client.post(LIST, chosen)
    assert list(AuditEntry.objects.order_by("id").values()) == before


def test_a_callers_page_shows_its_history(as_owner: Client, rows: Rows) -> None:
    for number in range(40):
        audit("test.done", caller=rows.caller, subject=f"number {number}.", reason=f"because {number}.")
    text = as_owner.get(admin_url(type(rows.caller), "change", rows.caller.pk)).content.decode()
    assert "number 39." in text
    assert "because 10." in text
    assert "number 9." not in text
    assert f"{LIST}?caller_id={rows.caller.pk}" in text


def test_what_an_owner_does_is_theirs(as_owner: Client, rows: Rows) -> None:
    url = reverse("admin:trust_caller_grant", args=[rows.caller.pk])
    as_owner.post(url, {"slug": "chat"}, headers={"X-Request-ID": "request-1234"})
    entry = AuditEntry.objects.latest("id")
    assert (entry.action, entry.subject, entry.actor) == ("grant.added", "chat", "owner olivia")
    assert entry.request_id == "request-1234"

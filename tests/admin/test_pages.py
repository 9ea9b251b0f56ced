"""Opens every page of the admin as everybody: who sees what, and that nothing of another owner's shows anywhere."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from a2a_server.models import Task
from tests.admin.conftest import OWNED, LoginAs, Rows, admin_url, make_task
from trust.models import Caller, CallerIdentity, Grant, RefusedCall
from trust.services import caller_create, identified_caller_create
from volcanic.admin import base
from volcanic.models import Session, Workspace

SUPERUSERS_ONLY = [User, AccessAttempt, RefusedCall]
PAGES = ["change", "history", "delete"]


def _text(client: Client, url: str, status: int = 200) -> str:
    response = client.get(url)
    assert response.status_code == status, url
    return response.content.decode()


def _pages(model: type[Any], row: Any) -> Iterator[tuple[str, str]]:
    yield "changelist", admin_url(model, "changelist")
    yield "add", admin_url(model, "add")
    for page in PAGES:
        yield page, admin_url(model, page, row.pk)


def test_every_screen_is_in_these_tests() -> None:
    registered = {model for model in admin.site._registry if model._meta.app_label != "a2a_client"}
    assert registered == {*OWNED, *SUPERUSERS_ONLY}


@pytest.mark.parametrize("model", OWNED)
def test_owner_sees_own_rows_only(model: type[Any], as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    add, delete = OWNED[model]
    expected = {"add": add, "delete": delete}
    for page, url in _pages(model, rows.row_of(model)):
        text = _text(as_owner, url, expected.get(page, 200))
        assert other_rows.mark not in text, page
        if page in {"changelist", "change"}:
            assert rows.mark in text


@pytest.mark.parametrize("model", OWNED)
def test_another_owners_row_is_not_found(model: type[Any], as_other: Client, rows: Rows, other_rows: Rows) -> None:
    for page in PAGES:
        refused = 403 if page == "delete" and OWNED[model][1] == 403 else 404
        assert rows.mark not in _text(as_other, admin_url(model, page, rows.row_of(model).pk), refused)
        assert _text(as_other, admin_url(model, page, 0 if model is not Task else "x"), refused)
    posted = as_other.post(admin_url(model, "change", rows.row_of(model).pk), {"name": "taken"})
    assert posted.status_code in {403, 404}


@pytest.mark.parametrize("model", OWNED)
def test_superuser_sees_all(model: type[Any], as_superuser: Client, rows: Rows, other_rows: Rows) -> None:
    add, delete = (200 if model in {Workspace, CallerIdentity} else OWNED[model][0]), OWNED[model][1]
    expected = {"add": add, "delete": delete}
    for one in (rows, other_rows):
        for page, url in _pages(model, one.row_of(model)):
            text = _text(as_superuser, url, expected.get(page, 200))
            if page in {"changelist", "change"}:
                assert one.mark in text


@pytest.mark.parametrize("model", SUPERUSERS_ONLY)
def test_the_installations_screens_are_superusers(
    model: type[Any], as_owner: Client, as_superuser: Client, rows: Rows, owner: User
) -> None:
    attempt = {"username": "x", "ip_address": "192.0.2.1", "failures_since_start": 1}
    make: dict[type[Any], Callable[[], Any]] = {
        User: lambda: User.objects.create_user("vera"),
        AccessAttempt: lambda: AccessAttempt.objects.create(**attempt),
        RefusedCall: lambda: RefusedCall.objects.create(source="192.0.2.1", reason="wrong-key", path="/a2a"),
    }
    row = make[model]()
    for page, url in _pages(model, row):
        _text(as_owner, url, 403)
        _text(as_superuser, url, 403 if page == "add" and model in {AccessAttempt, RefusedCall} else 200)


def test_an_owners_account_is_not_deleted(as_superuser: Client, rows: Rows, owner: User) -> None:
    assert as_superuser.post(admin_url(User, "delete", owner.pk), {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [owner.pk], "post": "yes"}
    assert "workspace main" in as_superuser.post(admin_url(User, "changelist"), chosen).content.decode()
    assert User.objects.filter(pk=owner.pk).exists()


@pytest.mark.parametrize("model", [*OWNED, *SUPERUSERS_ONLY])
def test_staff_without_a_workspace_sees_nothing(
    model: type[Any], login_as: LoginAs, staff_without_workspace: User, rows: Rows
) -> None:
    client = login_as(staff_without_workspace)
    assert "You own no workspace yet" in _text(client, reverse("admin:index"))
    _text(client, admin_url(model, "changelist"), 403)


@pytest.mark.parametrize("model", [*OWNED, *SUPERUSERS_ONLY])
def test_others_are_sent_to_the_login(model: type[Any], client: Client, login_as: LoginAs, rows: Rows) -> None:
    customer = login_as(User.objects.create_user("carl"))
    with_key = Client(headers={"X-API-Key": rows.api_key, "Authorization": f"Bearer {rows.api_key}"})
    for visitor in (client, customer, with_key):
        response = visitor.get(admin_url(model, "changelist"))
        assert response.status_code == 302
        assert response["Location"].startswith("/admin/login/")


def test_first_page_shows_own_figures_and_tasks(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    text = _text(as_owner, reverse("admin:index"))
    assert "olivias request" in text
    assert "Callers" in text
    assert other_rows.mark not in text
    assert "/admin/auth/user/" not in text


def test_filters_and_choices_offer_own_rows_only(as_other: Client, rows: Rows, other_rows: Rows) -> None:
    foreign = {"caller__id__exact": rows.caller.pk, "workspace__id__exact": rows.workspace.pk}
    listed = as_other.get(admin_url(Task, "changelist"), {"caller__id__exact": foreign["caller__id__exact"]})
    assert rows.mark not in listed.content.decode()
    listed = as_other.get(admin_url(Caller, "changelist"), {"workspace__id__exact": foreign["workspace__id__exact"]})
    assert rows.mark not in listed.content.decode()
    looked_up = as_other.get(
        reverse("admin:autocomplete"),
        {"app_label": "trust", "model_name": "grant", "field_name": "caller", "term": "olivias"},
    )
    assert looked_up.json()["results"] == []
    found = as_other.get(reverse("admin:search"), {"s": "olivias", "extended": "1"})
    assert rows.mark + "-bot" not in found.content.decode()


def test_a_filter_by_another_tables_column_is_refused(as_owner: Client, rows: Rows) -> None:
    assert as_owner.get(admin_url(Task, "changelist"), {"caller__keys__digest__startswith": "a"}).status_code == 400


def test_no_list_counts_its_table(as_superuser: Client, rows: Rows) -> None:
    for model in OWNED:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            _text(as_superuser, admin_url(model, "changelist"))
        assert not [one["sql"] for one in queries if "COUNT(" in one["sql"].upper()], model
    with CaptureQueriesContext(connection) as queries:
        _text(as_superuser, admin_url(Task, "changelist") + "?state__exact=working&q=x")
        _text(as_superuser, reverse("admin:index"))
        _text(as_superuser, admin_url(Session, "change", rows.session.pk))
        _text(as_superuser, admin_url(Task, "change", rows.task.pk))
    assert not [one["sql"] for one in queries if "COUNT(" in one["sql"].upper()]


def test_a_long_list_is_capped(as_owner: Client, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "LISTED_ROWS", 2)
    for _ in range(2):
        make_task(rows)
    text = _text(as_owner, admin_url(Task, "changelist"))
    assert "search or filter for more" in text


@pytest.mark.parametrize("model", [Task, Session, Caller, Grant, CallerIdentity])
def test_a_longer_list_takes_no_more_queries(model: type[Any], as_owner: Client, rows: Rows) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            _text(as_owner, admin_url(model, "changelist"))
        return len(captured)

    queries()  # content types are looked up once for the process
    few = queries()
    for number in range(5):
        make_task(rows)
        caller_create(workspace=rows.workspace, name=f"more-{number}", skills=["chat"])
        identified_caller_create(workspace=rows.workspace, name=f"told-{number}", issuer="x", agent_id=f"{number}")
    assert queries() == few


def test_lists_leave_large_columns_out(as_owner: Client, rows: Rows) -> None:
    with CaptureQueriesContext(connection) as captured:
        _text(as_owner, admin_url(Task, "changelist"))
    listed = [one["sql"] for one in captured if "ORDER BY" in one["sql"] and '"status_at" DESC' in one["sql"]]
    assert listed
    assert not [sql for sql in listed if '"a2a_server_task"."history",' in sql or '."status_message"' in sql]

"""The admin in a browser: what only a browser shows, as scripts, the content security policy and the width."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from tests.admin.conftest import Rows, make_rows
from tests.product import Product
from volcanic.models import Workspace

OWN_PAGES = (
    "admin:a2a_server_task",
    "admin:a2a_server_pushconfig",
    "admin:trust_caller",
    "admin:trust_skill",
    "admin:volcanic_session",
    "admin:volcanic_memory",
    "admin:volcanic_notification",
    "admin:volcanic_workspace",
)


@pytest.fixture
def rows(transactional_db: None, workspace: Workspace) -> Rows:
    """One row of everything, in the owner's workspace."""
    return make_rows(workspace, "marked")


def log_in(page: Page) -> None:
    """Logs the owner in by the form."""
    page.goto("/admin/")
    page.get_by_label("Username").fill("olivia")
    page.get_by_label("Password").fill("olivia-password")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/admin/")


def fits(page: Page) -> None:
    """Fails if the page that is open is wider than the screen."""
    too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert too_wide <= 0, f"{page.url} is {too_wide} px wider than the screen"


def open_page(page: Page, path: str) -> None:
    """Opens a page, which must be there and no wider than the screen."""
    response = page.goto(path)
    assert response is not None
    assert response.status == 200, path
    fits(page)


def test_every_page_fits_and_runs_without_an_error(rows: Rows, page: Page) -> None:
    log_in(page)
    for name in OWN_PAGES:
        open_page(page, reverse(f"{name}_changelist"))
    open_page(page, reverse("admin:a2a_server_task_change", args=[rows.task.pk]))
    expect(page.get_by_text(str(rows.task.pk)).first).to_be_visible()
    open_page(page, reverse("admin:trust_caller_change", args=[rows.caller.pk]))
    open_page(page, reverse("admin:volcanic_session_change", args=[rows.session.pk]))


def test_a_new_key_is_shown_once_and_works(rows: Rows, page: Page, product: Product) -> None:
    log_in(page)
    open_page(page, reverse("admin:trust_caller_change", args=[rows.caller.pk]))
    page.get_by_role("button", name="Make a new key").click()
    key = page.get_by_label("New key").input_value()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    fits(page)
    with product.api(key) as api:
        assert api.result("ListTasks")["totalSize"] == 1
    with product.api(rows.api_key) as api:
        assert api.http.post("/a2a", json={}).status_code == 401
    page.goto(reverse("admin:trust_caller_change", args=[rows.caller.pk]))
    expect(page.get_by_role("button", name="Make a new key")).to_be_visible()
    assert key not in page.content()

"""The admin in a browser: what only a browser shows, as scripts, the content security policy and the width."""

import pytest
from playwright.sync_api import Page, expect

from a2a_server.models import Task
from tests.admin.conftest import OWNED, Rows, admin_url, make_rows
from tests.product import Product
from trust.models import Caller
from volcanic.models import Workspace


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
    fits(page)
    for model in OWNED:
        open_page(page, admin_url(model, "changelist"))
        open_page(page, admin_url(model, "change", rows.row_of(model).pk))
    open_page(page, admin_url(Task, "change", rows.task.pk))
    expect(page.get_by_text(str(rows.task.pk)).first).to_be_visible()


def test_a_new_key_is_shown_once_and_works(rows: Rows, page: Page, product: Product) -> None:
    log_in(page)
    open_page(page, admin_url(Caller, "change", rows.caller.pk))
    page.get_by_role("button", name="Make a new key").click()
    key = page.get_by_label("New key").input_value()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    fits(page)
    with product.api(key) as api:
        assert api.result("ListTasks")["totalSize"] == 1
    with product.api(rows.api_key) as api:
        assert api.http.post("/a2a", json={}).status_code == 401
    page.goto(admin_url(Caller, "change", rows.caller.pk))
    expect(page.get_by_role("button", name="Make a new key")).to_be_visible()
    assert key not in page.content()

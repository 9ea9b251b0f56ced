"""The admin in a browser: what only a browser shows, as scripts, the content security policy and the width."""

import pytest
from playwright.sync_api import Page, expect

from a2a_server.models import PushConfig, Task
from tests.admin.conftest import OWNED, Rows, admin_url, make_rows, make_task, wire_message
from tests.product import Product
from trust.models import Caller, Review
from volcanic.models import Memory, Notification, NotificationDelivery, Workspace


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


@pytest.fixture
def long_words(rows: Rows) -> Rows:
    """The same rows, with words of a caller's that end nowhere."""
    word = "W" * 300
    rows.push_config.url = f"https://example.com/{word}"
    rows.push_config.save(update_fields=["url"])
    for model in (Notification, NotificationDelivery, Memory):
        model.objects.update(text=word)
    Review.objects.update(request=word, summary=word)
    NotificationDelivery.objects.update(last_error="Failed to send JSON POST notification: Internal server error.")
    make_task(rows, history=[wire_message("ROLE_USER", word)])
    return rows


def test_no_word_pushes_anything_off_the_page(long_words: Rows, page: Page) -> None:
    log_in(page)
    fits(page)
    listed = page.locator(".volcanic-cards ~ .volcanic-section table")
    assert listed.evaluate("table => table.getBoundingClientRect().right - innerWidth") <= 0
    open_page(page, admin_url(PushConfig, "change", long_words.push_config.pk))
    for model in (Task, Review, Notification, NotificationDelivery, Memory, PushConfig):
        open_page(page, admin_url(model, "changelist"))
        listed = page.locator("#result_list")
        over = listed.evaluate("table => table.getBoundingClientRect().right - innerWidth")
        assert over <= 120, f"{model.__name__}: {over} px of the list are off the screen"  # a column at most
        first = listed.locator("tbody th").first
        assert first.evaluate("cell => cell.clientWidth") > 150


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

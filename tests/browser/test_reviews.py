"""Decisions in a browser: on the first page and on a request's own, at a desk and on a phone."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from a2a_server.models import TaskState
from tests.admin.conftest import Rows, admin_url, make_review, make_rows, make_task, wire_message
from tests.browser.test_admin import fits, log_in, open_page
from tests.product import Product
from tests.waiting import PATIENCE
from trust.models import Review
from volcanic.models import Workspace


@pytest.fixture
def waiting(transactional_db: None, workspace: Workspace) -> tuple[Rows, list[Review]]:
    """The owner's rows, and two requests that wait. One has words that are longer than a phone is wide."""
    rows = make_rows(workspace, "marked")
    rows.review.delete()
    reviews = []
    for text in ("book the train to Bern", "x" * 600):
        task = make_task(rows, state=TaskState.AUTH_REQUIRED, history=[wire_message("ROLE_USER", text)])
        reviews.append(make_review(rows.caller, task, text=text, files=[text]))
    return rows, reviews


def test_a_request_is_approved_on_its_page(waiting: tuple[Rows, list[Review]], page: Page, product: Product) -> None:
    rows, (first, second) = waiting
    log_in(page)
    fits(page)
    open_page(page, admin_url(Review, "change", second.pk))
    open_page(page, admin_url(Review, "change", first.pk))
    page.get_by_label("Your text").fill("second class")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Approved: it is being done.")).to_be_visible()
    assert page.url.endswith(admin_url(Review, "change", second.pk))  # the next one
    fits(page)
    with product.api(rows.api_key) as api:
        assert api.wait(str(first.task), "COMPLETED")
    open_page(page, admin_url(Review, "change", first.pk))
    expect(page.get_by_text("second class")).to_be_visible()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)


def test_the_second_tab_is_told_that_it_was_decided(
    waiting: tuple[Rows, list[Review]], page: Page, product: Product
) -> None:
    _, (first, second) = waiting
    log_in(page)
    assert page.context.browser is not None
    size = page.viewport_size
    # A second tab: the same login in a context of its own, for the page's own context holds one page.
    context = page.context.browser.new_context(
        base_url=product.url, viewport=size, storage_state=page.context.storage_state()
    )
    context.set_default_timeout(PATIENCE * 1000)
    tab = context.new_page()
    tab.goto(admin_url(Review, "change", first.pk))
    card = page.locator("article").filter(has_text="book the train to Bern").first
    card.get_by_label("Your text").fill("It is booked.")
    card.get_by_role("button", name="Reply").click()
    expect(page.get_by_text("Your reply went to")).to_be_visible()
    assert page.url.endswith(reverse("admin:index"))
    expect(page.locator(f"#review-{second.pk}-text")).to_be_visible()
    expect(page.locator(f"#review-{first.pk}-text")).to_have_count(0)
    tab.get_by_role("button", name="Decline").click()
    expect(tab.get_by_text("It was decided before: replied by owner olivia.")).to_be_visible()
    expect(tab.get_by_text("It is booked.")).to_be_visible()
    fits(tab)

"""Drafts in a browser, at a desk and on a phone: edited, then approved, and done alone from then on."""

import pytest
from playwright.sync_api import Page, expect

from a2a_server.models import TaskState
from tests.admin.conftest import Rows, admin_url, make_draft, make_review, make_rows, make_task
from tests.browser.test_admin import fits, log_in, open_page
from tests.product import Product, text_of
from trust.models import Observation, Review, SkillDraft
from volcanic.models import Workspace

REQUEST = "Please note that the parcel of Friday has come."


@pytest.fixture
def proposed(transactional_db: None, workspace: Workspace) -> tuple[Rows, SkillDraft]:
    """The owner's rows, and a draft with words that are longer than a phone is wide."""
    rows = make_rows(workspace, "marked")
    observation = Observation.objects.create(
        caller=rows.caller, task=rows.task.pk, skill="chat", request="x" * 600, edits="y" * 400, decision="approve"
    )
    draft = make_draft(rows.caller, [observation], text=REQUEST, name="Note parcels", instructions="z" * 600)
    SkillDraft.objects.filter(pk=draft.pk).update(examples=[REQUEST, "send it to " + "a" * 200 + "@example.com"])
    return rows, draft


def test_a_draft_is_edited_and_approved(proposed: tuple[Rows, SkillDraft], page: Page, product: Product) -> None:
    rows, draft = proposed
    log_in(page)
    fits(page)
    open_page(page, admin_url(SkillDraft, "change", draft.pk))
    page.get_by_text("Edit the draft first").click()
    fits(page)
    page.get_by_label("Description").fill("Writes parcels down.")
    page.get_by_role("button", name="Save edits").click()
    expect(page.get_by_text("Saved. The draft is tried again.")).to_be_visible()
    expect(page.locator(".volcanic-reading").get_by_text("Writes parcels down.")).to_be_visible()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("From now on requests of marked-bot that the draft covers are handled")).to_be_visible()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    fits(page)
    with product.api(rows.api_key) as api:
        task = api.send(REQUEST)
        assert REQUEST in text_of(task)
    open_page(page, f"/admin/a2a_server/task/{task['id']}/change/")
    page.get_by_label("What should have been different?").fill("Append, don't replace.")
    page.get_by_role("button", name="Not like this: take the grant back").click()
    expect(page.get_by_text(f"{draft.slug} is no longer granted to marked-bot.")).to_be_visible()
    fits(page)
    open_page(page, admin_url(SkillDraft, "change", draft.pk))
    expect(page.get_by_text("Append, don't replace.").first).to_be_visible()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()


@pytest.fixture
def shown(proposed: tuple[Rows, SkillDraft]) -> Review:
    """A review that shows the draft."""
    rows, draft = proposed
    draft.refresh_from_db()
    return make_review(rows.caller, make_task(rows, state=TaskState.AUTH_REQUIRED), text=REQUEST, draft=draft)


def test_a_draft_is_rejected_where_a_review_shows_it(
    proposed: tuple[Rows, SkillDraft], shown: Review, page: Page
) -> None:
    log_in(page)
    open_page(page, admin_url(Review, "change", shown.pk))
    fits(page)
    page.get_by_text("All of the instructions").click()
    fits(page)
    expect(page.get_by_role("link", name="Edit the draft")).to_be_visible()
    page.get_by_role("button", name="Reject the draft").click()
    expect(page.get_by_text("Rejected. Such requests still come to you")).to_be_visible()
    expect(page.get_by_role("button", name="Reject the draft")).to_have_count(0)
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    fits(page)

"""Drafts in a review that they would cover: what is shown of them, and decisions there."""

import uuid

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from a2a_server.models import TaskState
from tests.admin.conftest import Rows, admin_url, make_draft, make_review, make_task
from tests.admin.draft_pages import EXAMPLE, draft_page, draft_state, draft_url, post_draft
from trust.admin.draft_pages import LATEST, SHORT
from trust.learning.services import draft_approve, not_like_this
from trust.models import AuditEntry, Caller, Observation, Review, Skill, SkillDraft
from trust.services import caller_set_enabled, grant_add


def _waiting(rows: Rows, draft: SkillDraft) -> Review:
    task = make_task(rows, state=TaskState.AUTH_REQUIRED, caller=draft.caller)
    return make_review(draft.caller, task, text=EXAMPLE, draft=draft)


def test_a_review_shows_the_draft_that_would_cover_it(as_owner: Client, rows: Rows, draft: SkillDraft) -> None:
    rows.review.delete()
    SkillDraft.objects.filter(pk=draft.pk).update(instructions="x" * SHORT + " the rest")
    review = _waiting(rows, SkillDraft.objects.get(pk=draft.pk))
    pages = [reverse("admin:trust_review_change", args=[review.pk]), reverse("admin:index")]
    for text in [as_owner.get(url).content.decode() for url in pages]:
        for part in (
            "2 requests like this were approved.",
            "with write_file.",
            "Writes parcels down.",
            "x" * (SHORT - 1) + "…",
            "All of the instructions",
            "I would write: Friday.",
            draft_url("change", draft.pk),
            "Approve, and handle this from now on",
            # What was asked, and how it was decided each time.
            "the parcel of Monday has come",
            "the parcel of Friday has come",
            'data-label="Decision">Approved',
            "One line each.",
            admin_url(Observation, "change", draft.evidence[1]),
            "Edit the draft",
            "Reject the draft",
            draft_url("reject", draft.pk),
        ):
            assert part in text, part


def test_a_card_shows_the_latest_decisions(as_owner: Client, rows: Rows, caller: Caller) -> None:
    evidence = [
        Observation.objects.create(
            caller=caller, task=uuid.uuid4(), skill="chat", decision="approve", request=f"no. {n}"
        )
        for n in range(LATEST + 2)
    ]
    review = _waiting(rows, make_draft(caller, evidence, text=EXAMPLE))
    text = as_owner.get(reverse("admin:trust_review_change", args=[review.pk])).content.decode()
    assert "no. 1<" not in text
    assert f"no. {LATEST + 1}<" in text
    assert "And 2 earlier" in text


def test_a_draft_is_rejected_where_the_review_shows_it(
    as_owner: Client, as_other: Client, owner: User, rows: Rows, other_rows: Rows, draft: SkillDraft
) -> None:
    review = _waiting(rows, draft)
    url, page = draft_url("reject", draft.pk), reverse("admin:trust_review_change", args=[review.pk])
    posted = {"version": draft.version, "review": review.pk}
    assert as_other.post(url, posted).status_code == 404
    checked = Client(enforce_csrf_checks=True)
    checked.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    assert checked.post(url, posted).status_code == 403
    token = checked.get(page).context["csrf_token"]
    response = checked.post(url, {**posted, "csrfmiddlewaretoken": str(token)}, follow=True)
    assert response.redirect_chain == [(page, 302)]
    text = response.content.decode()
    assert "Rejected. Such requests still come to you" in text
    assert "If you have such requests handled from now on" not in text
    assert draft_state(draft) == "rejected"
    review.refresh_from_db()
    assert (review.state, review.draft) == ("pending", None)
    # Nowhere else, whatever is posted.
    for where in ("https://evil.example/", "9" * 30, "-1", "٣"):
        answer = as_owner.post(url, {**posted, "review": where})
        assert answer["Location"] == draft_url("change", draft.pk)


def test_what_others_use_is_named(as_owner: Client, rows: Rows, draft: SkillDraft) -> None:
    skill = draft_approve(draft=draft, version=draft.version)
    grant_add(caller=rows.caller, slug=skill.slug)
    assert not_like_this(caller=draft.caller, slug=skill.slug, task=uuid.uuid4(), request="x")
    draft.refresh_from_db()
    review = _waiting(rows, draft)
    assert "is granted to olivias-bot, too, and stays as it is for them" in draft_page(as_owner, draft)
    text = as_owner.get(reverse("admin:trust_review_change", args=[review.pk])).content.decode()
    assert "is granted to olivias-bot, too, and stays as it is for them" in text
    post_draft(as_owner, draft, "approve")
    assert "it is granted to olivias-bot, too" in AuditEntry.objects.filter(action="draft.approved").latest("id").reason
    assert Skill.objects.filter(by_example=True).count() == 2


def test_what_can_not_be_approved_says_why(as_owner: Client, rows: Rows, draft: SkillDraft) -> None:
    review = _waiting(rows, draft)
    caller_set_enabled(caller=draft.caller, enabled=False)
    Review.objects.filter(pk=review.pk).update(state=Review.State.PENDING)
    told = "parcel-bot is disabled. Enable it first, or reject the draft."
    text = draft_page(as_owner, draft)
    assert told in text
    assert draft_url("approve", draft.pk) not in text
    assert told in as_owner.get(reverse("admin:trust_review_change", args=[review.pk])).content.decode()
    assert told in post_draft(as_owner, draft, "approve")
    assert draft_state(draft) == "open"


def test_a_draft_that_was_decided_elsewhere_is_not_offered(as_owner: Client, rows: Rows, draft: SkillDraft) -> None:
    review = _waiting(rows, draft)
    draft_approve(draft=draft, version=draft.version)
    text = as_owner.get(reverse("admin:trust_review_change", args=[review.pk])).content.decode()
    assert "Reject the draft" not in text
    assert 'value="grant"' not in text
    assert 'value="approve"' in text

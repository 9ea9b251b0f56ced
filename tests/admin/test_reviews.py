"""The screens of reviews: what waits is shown where the owner looks first, and each button reaches the task."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from a2a_server.models import Task, TaskState
from a2a_server.services import task_cancel
from tests.admin.conftest import LoginAs, Rows, make_review, make_task, wire_message
from trust.admin import review_pages
from trust.decisions import review_decide
from trust.models import Caller, Grant, Level, Observation, Review, Skill, SkillDraft
from trust.services import review_add, skill_update, thread_entry
from volcanic.admin import base

HOSTILE = "<script>alert('a')</script><img src=x onerror=alert(1)> https://evil.example/ \u202ekcab"
BUTTONS = ("Approve", "Approve and grant", "Reply", "Ask back", "Decline")


@pytest.fixture
def rows(rows: Rows) -> Rows:
    """The owner's rows; nothing waits yet."""
    rows.review.delete()
    return rows


def _url(page: str, *args: object) -> str:
    return reverse(f"admin:trust_review_{page}", args=args)


def _page(client: Client, review: Review) -> str:
    response = client.get(_url("change", review.pk))
    assert response.status_code == 200
    return response.content.decode()


def _index(client: Client) -> str:
    return client.get(reverse("admin:index")).content.decode()


def _listed(client: Client, **query: Any) -> str:
    response = client.get(_url("changelist"), query)
    assert response.status_code == 200
    return response.content.decode()


def _post(client: Client, review: Review, decision: str, text: str = "", **more: Any) -> Any:
    data = {"decision": decision, "text": text, "digest": review.digest, **more}
    return client.post(_url("decide", review.pk), data, follow=True)


def _state(task: Task) -> TaskState:
    task.refresh_from_db()
    return TaskState(task.state)


def test_a_review_is_shown_with_everything_that_a_decision_needs(as_owner: Client, rows: Rows, task: Task) -> None:
    Caller.objects.filter(pk=task.caller_id).update(interaction_count=7, first_seen_at=timezone.now())
    Skill.objects.filter(pk=rows.skill.pk).update(instructions="Book second class only.", tools=["send", "recall"])
    review = make_review(
        task.caller,
        task,
        text="book the train\nto Bern",
        skill=rows.skill.slug,
        files=["plan.pdf (application/pdf)"],
        thread=[thread_entry("owner", "When?"), thread_entry("caller", "On Monday.")],
        note="The assistant could not sum it up.",
        keys=[rows.key.pk],
        summary="Wants a train booked.",
        suggestion="approve.",
    )
    text = _page(as_owner, review)
    for part in (
        reverse("admin:trust_caller_change", args=[task.caller_id]),
        "Observe",
        "asked 7 times since",
        "book the train\nto Bern",
        str(rows.key),
        "plan.pdf (application/pdf)",
        "When?",
        "On Monday.",
        "Wants a train booked.",
        "The assistant&#x27;s reading" if "assistant&#x27;s" in text else "The assistant's reading",
        "may be meant to mislead it",
        "The assistant could not sum it up.",
        "with recall, send.",
        "Book second class only.",
        f'value="{review.digest}"',
        *BUTTONS,
    ):
        assert part in text, part
    assert "changed since this request came" not in text


def test_what_would_run_is_told_in_words(as_owner: Client, rows: Rows, task: Task, review: Review) -> None:
    assert "all tools of chat" in _page(as_owner, review)
    Skill.objects.filter(pk=rows.skill.pk).update(kind="handler", handler="shop.answer", tools=[])
    Review.objects.filter(pk=review.pk).update(skill=rows.skill.slug)
    text = _page(as_owner, review)
    assert "the function shop.answer answers, with no tools" in text
    assert "The skill was changed since this request came." in text
    Review.objects.filter(pk=review.pk).update(skill="query-availability")
    assert "the server answers by itself" in _page(as_owner, review)
    Review.objects.filter(pk=review.pk).update(skill="gone")
    assert "nothing runs, since the skill gone is gone or disabled" in _page(as_owner, review)
    Skill.objects.filter(pk=rows.skill.pk).update(kind="assistant", handler="")
    Review.objects.filter(pk=review.pk).update(skill=rows.skill.slug)
    assert "as this skill is described" in _page(as_owner, review)


@pytest.mark.parametrize(
    ("decision", "text", "state", "became", "told"),
    [
        ("approve", "second class", TaskState.SUBMITTED, "approved", "it is being done"),
        ("approve", "", TaskState.SUBMITTED, "approved", "it is being done"),
        ("grant", "", TaskState.SUBMITTED, "approved", "travel-bot may use chat from now on"),
        ("reply", "It is\r\nbooked.", TaskState.COMPLETED, "replied", "Your reply went to travel-bot."),
        ("ask", "When?", TaskState.INPUT_REQUIRED, "asked", "Your question went to travel-bot."),
        ("decline", "No trips.", TaskState.REJECTED, "declined", "travel-bot was told"),
        ("decline", "", TaskState.REJECTED, "declined", "travel-bot was told"),
    ],
)
def test_each_button_reaches_the_task(
    decision: str, text: str, state: TaskState, became: str, told: str, as_owner: Client, task: Task, review: Review
) -> None:
    response = _post(as_owner, review, decision, text)
    assert response.redirect_chain == [(_url("changelist"), 302)]
    assert told in response.content.decode()
    assert _state(task) == state
    review.refresh_from_db()
    words = text.replace("\r", "")
    assert (review.state, review.decision_text, review.decided_by) == (became, words, "owner olivia")
    observation = Observation.objects.get(review=review)
    assert (observation.decision, observation.reply + observation.edits) == (decision, words)
    assert Grant.objects.filter(caller=task.caller, skill__slug="chat", level=Level.ACT).exists() == (
        decision == "grant"
    )
    page = _page(as_owner, review)
    assert "owner olivia" in page
    assert words in page
    assert reverse("admin:a2a_server_task_change", args=[task.pk]) in page
    assert 'name="decision"' not in page


def test_the_next_one_comes_up(as_owner: Client, rows: Rows, task: Task, review: Review, other_rows: Rows) -> None:
    newer = [make_review(task.caller, make_task(rows, state=TaskState.AUTH_REQUIRED)) for _ in range(2)]
    response = _post(as_owner, review, "decline")
    assert response.redirect_chain == [(_url("change", newer[0].pk), 302)]
    response = _post(as_owner, newer[1], "decline", **{"from": "first-page"})
    assert response.redirect_chain == [(reverse("admin:index"), 302)]


@pytest.mark.parametrize(("decision", "missing"), [("reply", "Write the reply."), ("ask", "Write the question.")])
def test_a_text_that_is_missing(decision: str, missing: str, as_owner: Client, task: Task, review: Review) -> None:
    assert missing in _post(as_owner, review, decision, "  ").content.decode()
    assert _state(task) == TaskState.AUTH_REQUIRED
    for no_button in ("burn", "unlike"):
        assert "Choose one of the buttons." in _post(as_owner, review, no_button).content.decode()
    review.refresh_from_db()
    assert review.state == "pending"


def test_what_was_said_meanwhile_is_looked_at_first(as_owner: Client, task: Task, review: Review) -> None:
    message = wire_message("ROLE_USER", "and pay with your card")
    assert review_add(task=task.pk, caller_id=task.caller_id, message=message, text="and pay with your card")
    text = _post(as_owner, review, "approve", "second class, please").content.decode()
    assert "changed since it was shown to you" in text
    assert "and pay with your card" in text
    assert "second class, please" in text  # not typed in vain
    assert _state(task) == TaskState.AUTH_REQUIRED
    assert "second class, please" not in _page(as_owner, review)
    assert "changed since it was shown to you" in _post(as_owner, review, "approve", digest="").content.decode()
    review.refresh_from_db()
    _post(as_owner, review, "approve")
    assert _state(task) == TaskState.SUBMITTED


def test_the_second_of_two_tabs_is_told_and_changes_nothing(as_owner: Client, task: Task, review: Review) -> None:
    _post(as_owner, review, "approve")
    before = Observation.objects.count()
    for decision in ("approve", "decline"):
        text = _post(as_owner, review, decision).content.decode()
        assert "It was decided before: approved by owner olivia." in text
    assert _state(task) == TaskState.SUBMITTED
    assert Observation.objects.count() == before


def test_what_the_caller_took_back_is_void(as_owner: Client, task: Task, review: Review) -> None:
    task_cancel(task_id=task.pk, caller_id=task.caller_id)
    text = _post(as_owner, review, "approve").content.decode()
    assert "Void" in text
    assert 'name="decision"' not in text
    assert _state(task) == TaskState.CANCELED


def test_it_is_the_owners_by_post_with_a_csrf_token(
    as_owner: Client, as_other: Client, login_as: LoginAs, staff_without_workspace: User, owner: User, review: Review
) -> None:
    url, data = _url("decide", review.pk), {"decision": "approve", "digest": review.digest}
    checked = Client(enforce_csrf_checks=True)
    checked.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    assert as_owner.get(url).status_code == 405
    assert checked.post(url, data).status_code == 403
    # `as_other` owns nothing here: who does is told 404.
    assert login_as(staff_without_workspace).post(url, data).status_code == 403
    assert as_other.post(url, data).status_code in {403, 404}
    assert Client().post(url, data).status_code == 302
    assert as_owner.post(_url("decide", 0), data).status_code == 404
    review.refresh_from_db()
    assert review.state == "pending"


def test_another_owner_finds_nothing(as_other: Client, other_rows: Rows, review: Review) -> None:
    assert as_other.get(_url("change", review.pk)).status_code == 404
    assert as_other.post(_url("decide", review.pk), {"decision": "approve"}).status_code == 404
    assert "Bern" not in _listed(as_other) + _index(as_other)
    chosen = {"action": "decline", "answered": "1", "_selected_action": [review.pk], f"digest-{review.pk}": "x"}
    as_other.post(_url("changelist"), chosen)
    review.refresh_from_db()
    assert review.state == "pending"


def test_texts_of_callers_are_escaped(as_owner: Client, rows: Rows, task: Task) -> None:
    review = make_review(
        task.caller,
        task,
        text=HOSTILE,
        summary=HOSTILE,
        suggestion=HOSTILE,
        files=[HOSTILE],
        note=HOSTILE,
        thread=[{"from": "caller", "text": HOSTILE, "at": "<script>"}],
    )
    pages = [_page(as_owner, review), _index(as_owner), _listed(as_owner)]
    ask = as_owner.post(_url("changelist"), {"action": "decline", "_selected_action": [review.pk]})
    pages.append(ask.content.decode())
    _post(as_owner, review, "reply", HOSTILE)
    pages.append(_page(as_owner, review))
    decisions = reverse("admin:trust_observation_changelist")
    pages.append(as_owner.get(decisions).content.decode())
    newest = Observation.objects.latest("id").pk
    pages.append(as_owner.get(reverse("admin:trust_observation_change", args=[newest])).content.decode())
    for text in pages:
        assert "<script>alert(" not in text
        assert "<img src=x" not in text
        assert 'href="https://evil' not in text
        assert "&lt;script&gt;" in text


@pytest.mark.parametrize("state", Review.State.values)
def test_each_state_has_its_label(state: str, as_owner: Client, review: Review) -> None:
    assert state in review_pages.STATE_LABELS
    Review.objects.filter(pk=review.pk).update(state=state, note="why")
    assert Review.State(state).label in _listed(as_owner)
    assert ('name="decision"' in _page(as_owner, review)) == (state == "pending")


def test_selected_ones_are_declined(as_owner: Client, rows: Rows, task: Task, review: Review) -> None:
    other = make_review(rows.caller, make_task(rows, state=TaskState.AUTH_REQUIRED))
    chosen = {"action": "decline", "_selected_action": [review.pk, other.pk]}
    asked = as_owner.post(_url("changelist"), chosen).content.decode()
    assert "book the train to Bern" in asked
    assert f'name="digest-{review.pk}" value="{review.digest}"' in asked
    assert _state(task) == TaskState.AUTH_REQUIRED
    answer = {**chosen, "answered": "1", "text": "Not now.", f"digest-{review.pk}": review.digest}
    told = as_owner.post(_url("changelist"), answer, follow=True).content.decode()
    assert "Declined: 1." in told
    assert "Not declined: 1. The request has changed since it was shown to you." in told
    assert _state(task) == TaskState.REJECTED
    review.refresh_from_db()
    assert review.decision_text == "Not now."
    chosen["_selected_action"] = [review.pk]
    assert "No selected request waits" in as_owner.post(_url("changelist"), chosen, follow=True).content.decode()


def test_one_that_offers_a_grant_says_so(as_owner: Client, task: Task) -> None:
    review = make_review(task.caller, task, offers_grant=True)
    assert "Approve, and handle this from now on" in _page(as_owner, review)


def test_a_draft_that_would_become_a_skill_is_shown(as_owner: Client, task: Task) -> None:
    draft = SkillDraft.objects.create(
        caller=task.caller,
        slug="book-trains",
        name="Book trains",
        description="Books <b>trains</b>.",
        instructions="Second class only.",
        tools=["send"],
        decision="approve",
        preview="Booked, I would say.",
        previewed_at=timezone.now(),
    )
    review = make_review(task.caller, task, text="book the train to Bern", draft=draft)
    for text in (_page(as_owner, review), _index(as_owner)):
        for part in (
            "Book trains",
            "with send.",
            "Second class only.",
            "Booked, I would say.",
            "Books &lt;b&gt;trains",
            "Approve, and handle this from now on",
        ):
            assert part in text, part
        assert "changed since this request came" not in text
    text = _post(as_owner, review, "grant").content.decode()
    assert "travel-bot may use book-trains from now on" in text
    assert Grant.objects.filter(caller=task.caller, skill__slug="book-trains").exists()
    assert "If you have such requests handled" not in _page(as_owner, review)


def test_without_the_server_of_tasks_there_is_no_link(
    as_owner: Client, review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_such_page(name: str, args: Any = None) -> str:
        raise NoReverseMatch

    review_decide(review_id=review.pk, decision=Observation.Decision.DECLINE, digest=review.digest)
    monkeypatch.setattr(base, "reverse", no_such_page)
    assert "The task</a>" not in _page(as_owner, review)


def test_a_review_is_changed_by_nothing_else(as_superuser: Client, review: Review) -> None:
    assert as_superuser.post(_url("change", review.pk), {"state": "approved"}).status_code == 403
    assert as_superuser.post(_url("delete", review.pk), {"post": "yes"}).status_code == 403


def test_a_skill_that_was_changed_is_told_before_it_is_approved(as_owner: Client, rows: Rows, task: Task) -> None:
    review = make_review(task.caller, task, skill=rows.skill.slug)
    skill_update(skill=rows.skill, instructions="Do more.")
    assert "it is put before you once more" in _page(as_owner, review)

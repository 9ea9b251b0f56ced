"""Lists of reviews: waiting ones, also on the first page, and the decided ones."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from a2a_server.models import Task, TaskState
from tests.admin.conftest import LoginAs, Rows, make_review, make_task
from trust.admin import reviews
from trust.decisions import review_decide
from trust.models import Observation, Review


@pytest.fixture
def rows(rows: Rows) -> Rows:
    """The owner's rows; nothing waits yet."""
    rows.review.delete()
    return rows


def _url(page: str, *args: object) -> str:
    return reverse(f"admin:trust_review_{page}", args=args)


def _index(client: Client) -> str:
    return client.get(reverse("admin:index")).content.decode()


def _listed(client: Client, **query: Any) -> str:
    response = client.get(_url("changelist"), query)
    assert response.status_code == 200
    return response.content.decode()


def test_waiting_ones_come_first_and_are_found(as_owner: Client, rows: Rows, review: Review) -> None:
    done = make_review(rows.caller, make_task(rows, state=TaskState.AUTH_REQUIRED), text="tea")
    Review.objects.filter(pk=done.pk).update(state="declined")
    text = _listed(as_owner)
    assert text.index("train to Bern") < text.index("done: tea")
    for query in (
        {"state__exact": "pending"},
        {"level__exact": "observe"},
        {"caller__id__exact": review.caller_id},
        {"q": "Bern"},
        {"q": "travel-bot"},
    ):
        text = _listed(as_owner, **query)
        assert "train to Bern" in text, query
        assert "done: tea" not in text, query
    assert "train to Bern" not in _listed(as_owner, q="'%")


def test_the_first_page_begins_with_what_waits(
    as_owner: Client, rows: Rows, review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reviews, "ON_FIRST_PAGE", 2)
    for text in ("second", "third"):
        make_review(rows.caller, make_task(rows, state=TaskState.AUTH_REQUIRED), text=text)
    index = _index(as_owner)
    assert index.index("book the train to Bern") < index.index("done: second") < index.index("Tasks running")
    assert "done: third" not in index
    assert "See all waiting requests" in index
    assert index.count('value="approve"') == 2
    assert f'action="{_url("decide", review.pk)}"' in index
    assert '<span class="volcanic-badge">3</span>' in index


def test_what_is_long_is_decided_on_its_own_page(as_owner: Client, rows: Rows, task: Task) -> None:
    hidden = "and send me all files"
    review = make_review(task.caller, task, text="please " * 1000 + hidden)
    index = _index(as_owner)
    assert "Read all of it before you decide" in index
    assert hidden not in index
    assert 'name="decision"' not in index
    page = as_owner.get(_url("change", review.pk)).content.decode()
    assert hidden in page
    assert 'value="approve"' in page


def test_nothing_waits(as_owner: Client, rows: Rows, login_as: LoginAs, staff_without_workspace: User) -> None:
    index = _index(as_owner)
    assert "volcanic-waiting" not in index
    assert "volcanic-badge" not in index
    assert "Waiting for you" in index  # the card
    assert "Waiting for you" not in _index(login_as(staff_without_workspace))


def test_decisions_are_listed(as_owner: Client, rows: Rows, task: Task, review: Review) -> None:
    review_decide(review_id=review.pk, decision=Observation.Decision.REPLY, digest=review.digest, text="It is booked.")
    observation = Observation.objects.get(review=review)
    url = reverse("admin:trust_observation_changelist")
    text = as_owner.get(url, {"q": "booked"}).content.decode()
    assert "Decisions" in text
    assert "book the train to Bern" in text
    assert "It is booked." in text
    assert "book the train" not in as_owner.get(url, {"decision__exact": "ask"}).content.decode()
    Observation.objects.filter(pk=observation.pk).update(reversed_at=timezone.now())
    text = as_owner.get(reverse("admin:trust_observation_change", args=[observation.pk])).content.decode()
    for part in ("It is booked.", "taken back", _url("change", review.pk), str(task.pk)):
        assert part in text, part
    review.delete()
    text = as_owner.get(reverse("admin:trust_observation_change", args=[observation.pk])).content.decode()
    assert "Task</a>" in text


def test_a_longer_list_takes_no_more_queries(
    as_owner: Client, rows: Rows, review: Review, django_assert_max_num_queries: Any
) -> None:
    for number in range(6):
        Review.objects.create(
            caller=rows.caller,
            task=uuid.uuid4(),
            skill="chat",
            level="act",
            request=f"request {number}",
            digest="d",
            request_digest=str(number),
            expires_at=timezone.now() + timedelta(days=1),
        )
    for url in (_url("changelist"), reverse("admin:index")):
        with django_assert_max_num_queries(22):
            as_owner.get(url)

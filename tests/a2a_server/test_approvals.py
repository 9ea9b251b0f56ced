"""Approvals: bound to the skill and the words that were shown, the level and the grant."""

import signal

import pytest

from tests.conftest import Keyed
from tests.product import Api, Product, message, state_of, text_of
from tests.reviewing import Decision, decide, review_of, waiting_review_of
from trust.errors import ReviewChangedError
from trust.models import Level, Review, Skill
from trust.services import grant_add, grant_revoke

State = Review.State


def _skilled(api: Api, keyed: Keyed, text: str = "hi", **metadata: str) -> dict[str, object]:
    params = {"message": message(text), "metadata": {"skill": "tidy", **metadata}}
    task: dict[str, object] = api.result("SendMessage", params)["task"]
    return task


@pytest.fixture
def tidy(stranger: Keyed) -> Skill:
    """A skill that is granted to the stranger."""
    skill = Skill.objects.create(
        workspace=stranger.caller.workspace,
        slug="tidy",
        name="Tidy up",
        description="Puts files in order.",
        instructions="Never delete anything.",
        tools=["list_files", "write_file"],
    )
    grant_add(caller=stranger.caller, slug="tidy")
    return skill


def test_a_granted_skill_below_act_is_a_review_without_a_model(strange: Api, stranger: Keyed, tidy: Skill) -> None:
    task = _skilled(strange, stranger, "fail: no model is asked")
    review = review_of(task)
    assert (review.skill, review.offers_grant, review.note) == ("tidy", False, "")
    assert "Tidy up" in review.summary


def test_an_approved_skill_runs_with_its_own_tools_and_instructions(
    strange: Api, stranger: Keyed, tidy: Skill, product: Product
) -> None:
    (product.folder / "workspaces" / "main").mkdir(parents=True, exist_ok=True)
    task = _skilled(strange, stranger, 'tool: write_file {"path": "a.txt", "content": "x"}')
    decide(task, Decision.APPROVE)
    assert "Wrote a.txt" in text_of(strange.wait(str(task["id"]), "COMPLETED"))
    other = _skilled(strange, stranger, 'tool: read_file {"path": "a.txt"}')
    decide(other, Decision.APPROVE)
    assert "read_file" in text_of(strange.wait(str(other["id"]), "COMPLETED"))
    assert "x" not in text_of(strange.get(str(other["id"]))).split()


def test_an_approval_holds_for_what_was_shown_only(
    strange: Api, stranger: Keyed, tidy: Skill, product: Product
) -> None:
    """The skill is another by the time the worker runs it."""
    task = _skilled(strange, stranger, "go")
    product.signal("worker", signal.SIGKILL)
    decide(task, Decision.APPROVE)
    Skill.objects.filter(pk=tidy.pk).update(instructions="Delete everything.")
    product.revive()
    product.sweep()
    review = waiting_review_of(task)
    assert "has changed since you approved it" in review.note
    assert state_of(strange.wait(str(task["id"]), "AUTH_REQUIRED")) == "AUTH_REQUIRED"
    decide(task, Decision.APPROVE)
    assert text_of(strange.wait(str(task["id"]), "COMPLETED")) == "go"


def test_an_approval_does_not_outlive_its_skill(strange: Api, stranger: Keyed, tidy: Skill, product: Product) -> None:
    """It is not done as plain chat, with all the tools of that."""
    task = _skilled(strange, stranger, "go")
    product.signal("worker", signal.SIGKILL)
    decide(task, Decision.APPROVE)
    Skill.objects.filter(pk=tidy.pk).update(enabled=False)
    product.revive()
    product.sweep()
    assert "The skill tidy is unavailable." in waiting_review_of(task).note
    assert state_of(strange.wait(str(task["id"]), "AUTH_REQUIRED")) == "AUTH_REQUIRED"
    with pytest.raises(ReviewChangedError, match="disabled"):
        decide(task, Decision.APPROVE)


def test_an_approval_does_not_outlive_the_callers_level(strange: Api, stranger: Keyed, product: Product) -> None:
    """Trust level lowered before the worker runs."""
    stranger.caller.level = Level.PROPOSE
    stranger.caller.save(update_fields=["level"])
    task = strange.send("go")
    product.signal("worker", signal.SIGKILL)
    decide(task, Decision.APPROVE)
    stranger.caller.level = Level.OBSERVE
    stranger.caller.save(update_fields=["level"])
    product.revive()
    product.sweep()
    assert "level was lowered" in waiting_review_of(task).note


def test_an_approval_does_not_outlive_its_grant(strange: Api, stranger: Keyed, tidy: Skill, product: Product) -> None:
    """Policy is asked again when an approved review runs."""
    task = _skilled(strange, stranger, "go")
    product.signal("worker", signal.SIGKILL)
    decide(task, Decision.APPROVE)
    grant_revoke(caller=stranger.caller, slug="tidy")
    product.revive()
    product.sweep()
    assert "no grant of tidy any more" in waiting_review_of(task).note
    with pytest.raises(ReviewChangedError, match="no grant of tidy"):
        decide(task, Decision.APPROVE)
    decide(task, Decision.GRANT)
    assert text_of(strange.wait(str(task["id"]), "COMPLETED")) == "go"


def test_a_message_after_the_approval_is_asked_about_again(strange: Api) -> None:
    """What the assistant was answered is not what the owner approved."""
    task = strange.send("ask: When?")
    decide(task, Decision.APPROVE)
    strange.wait(task["id"], "INPUT_REQUIRED")
    answered = strange.send("Now. And send me the diary.", taskId=task["id"])
    assert state_of(answered) == "AUTH_REQUIRED"
    review = review_of(task)
    assert review.state == State.PENDING
    assert review.thread[-1]["text"] == "Now. And send me the diary."

"""Edge cases of reviews: ways past the owner, and requests that could get stuck."""

import signal
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.utils import timezone

from a2a_server.models import PushConfig, Task
from a2a_server.receivers import orphaned_reviews_void
from tests.conftest import Keyed
from tests.product import Api, Product, message, question_of, state_of, text_of
from tests.receiver import Receiver
from tests.reviewing import Decision, decide, review_of, waiting_review_of
from trust.decisions import review_decide
from trust.errors import ReviewChangedError
from trust.learning.services import draft_approve
from trust.models import AuditEntry, Caller, Grant, Level, Review, Skill, SkillDraft
from trust.services import caller_set_limits, grant_add
from volcanic.models import Notification, Turn
from volcanic.services import note_write

State = Review.State
FILE = {"raw": "ZXZpbA==", "filename": "evil.txt"}


def test_a_message_under_the_id_of_the_approved_one_is_another(strange: Api, product: Product) -> None:
    """The caller chooses the ids of its messages."""
    asked = message("ask: Which?")
    task = strange.result("SendMessage", {"message": asked})["task"]
    decide(task, Decision.APPROVE)
    strange.wait(task["id"], "INPUT_REQUIRED")
    again = {**message("And pay 5000.", taskId=task["id"]), "messageId": asked["messageId"]}
    again["parts"].append(FILE)
    answered = strange.result("SendMessage", {"message": again})["task"]
    assert state_of(answered) == "AUTH_REQUIRED"
    review = review_of(task)
    assert (review.state, review.thread[-1]["text"]) == (
        State.PENDING,
        "And pay 5000.\n[file: evil.txt (type not given)]",
    )
    assert Turn.objects.filter(origin=f"task:{task['id']}").count() == 1
    assert not (product.folder / "workspaces" / "main" / "inbox" / "stranger").exists()


def test_an_answer_under_an_id_that_was_used_is_in_the_talk(strange: Api) -> None:
    """Some clients number their messages anew for each call."""
    asked = message("Book it.")
    task = strange.result("SendMessage", {"message": asked})["task"]
    decide(task, Decision.ASK, "For how many?")
    strange.result("SendMessage", {"message": {**message("Four.", taskId=task["id"]), "messageId": asked["messageId"]}})
    assert [line["text"] for line in waiting_review_of(task).thread] == ["For how many?", "Four."]


def test_an_approved_run_is_not_done_again_when_its_worker_dies(strange: Api, product: Product) -> None:
    """Only the reading before it changed nothing."""
    task = strange.send("sleep: 600\ndone")
    decide(task, Decision.APPROVE)
    strange.wait(task["id"], "WORKING")
    assert not Task.objects.get(pk=task["id"]).repeatable
    product.signal("worker", signal.SIGKILL)
    Task.objects.filter(pk=task["id"]).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert question_of(strange.get(task["id"])) == "server restarted"
    product.revive()


def test_the_readings_of_a_long_talk_are_counted_apart(strange: Api, product: Product) -> None:
    task = strange.send("Book it.")
    for number in range(3):
        decide(task, Decision.ASK, f"{number}?")
        strange.send(f"answer {number}", taskId=task["id"])
        waiting_review_of(task)
    assert Task.objects.get(pk=task["id"]).retries == 1


def test_files_that_come_while_it_waits_are_shown(strange: Api) -> None:
    task = strange.send("Look at it.")
    shown = review_of(task)
    strange.send(taskId=task["id"], parts=[FILE])
    review = review_of(task)
    assert review.files == ["evil.txt (type not given)"]
    assert "evil.txt" in review.thread[-1]["text"]
    with pytest.raises(ReviewChangedError):
        review_decide(review_id=review.pk, decision=Decision.APPROVE, digest=shown.digest)


def test_talk_has_its_bounds(strange: Api, stranger: Keyed) -> None:
    """Files count like any others, words to what an owner would read, hops and contexts like everywhere."""
    task = strange.send("Look at it.")
    caller_set_limits(caller=stranger.caller, max_inbox_bytes=3)
    assert strange.error("SendMessage", {"message": message(taskId=task["id"], parts=[FILE])}) == -32000
    assert strange.error("SendMessage", {"message": message("x" * 100_001, taskId=task["id"])}) == -32004
    hops = {"message": message("x", taskId=task["id"]), "metadata": {"volcanic.hops": 9}}
    assert strange.error("SendMessage", hops) == -32004
    other = message("x", taskId=task["id"], contextId="another")
    assert strange.error("SendMessage", {"message": other}) == -32602
    assert review_of(task).thread == []
    for number in range(50):
        strange.send(str(number), taskId=task["id"])
    assert strange.error("SendMessage", {"message": message("one more", taskId=task["id"])}) == -32004


def test_the_same_words_at_once_are_said_once(strange: Api) -> None:
    task = strange.send("Look at it.")
    words = {"message": message("please", taskId=task["id"])}
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda _: strange.result("SendMessage", words), range(6)))
    assert [line["text"] for line in review_of(task).thread] == ["please"]


def test_a_webhook_of_a_joined_request_and_of_talk_is_registered(strange: Api) -> None:
    task = strange.send("Look at it.")
    with Receiver() as hook:
        push = {"taskPushNotificationConfig": {"url": hook.url}}
        for sent in (message("Look at it."), message("please", taskId=task["id"])):
            joined = strange.result("SendMessage", {"message": sent, "configuration": push})["task"]
            assert joined["id"] == task["id"]
        assert PushConfig.objects.filter(task=task["id"]).count() == 2


@pytest.mark.parametrize("disguised", [False, True])
def test_messages_to_the_owner_are_bounded_whichever_way_they_come(strange: Api, disguised: bool) -> None:
    """Named in the message, in the request, or in the answer to a question: of one kind, and counted."""
    named = {"skill": "notify-user"}
    params = {"message": message("spam", metadata=named), "metadata": {"skill": "notify-user"} if disguised else {}}
    assert state_of(strange.result("SendMessage", params)["task"]) == "COMPLETED"
    other = {"message": message("spam", metadata=named), "metadata": {"skill": "telepathy"}}
    assert state_of(strange.result("SendMessage", other)["task"]) == "REJECTED"
    assert list(Notification.objects.values_list("kind", flat=True)) == ["message"]


def test_an_answer_for_notify_user_is_an_answer(strange: Api) -> None:
    """What the owner asked is answered to them, and not left as a message beside it."""
    task = strange.send("Book it.")
    decide(task, Decision.ASK, "For how many?")
    answer = {"message": message("Four.", taskId=task["id"]), "metadata": {"skill": "notify-user"}}
    assert state_of(strange.result("SendMessage", answer)["task"]) == "AUTH_REQUIRED"
    assert waiting_review_of(task).thread[-1]["text"] == "Four."
    assert not Notification.objects.filter(kind="message").exists()


def test_two_threads_about_the_same_request_both_go_on(strange: Api) -> None:
    """Once the owner has asked back, the thread is its own: the same request sent anew waits beside it."""
    task = strange.send("Book it.")
    decide(task, Decision.ASK, "For how many?")
    second = strange.send("Book it.")
    assert second["id"] != task["id"]
    assert state_of(strange.send("Four.", taskId=task["id"])) == "AUTH_REQUIRED"
    assert {review_of(one).state for one in (task, second)} == {State.PENDING}


@pytest.mark.parametrize("named", [{}, {"skill": "tidy"}])
def test_what_the_owner_asked_about_comes_back_to_them(strange: Api, stranger: Keyed, named: dict[str, str]) -> None:
    """Grants made since, or a skill named in the answer, change nothing: more would run than the answer."""
    Skill.objects.create(workspace=stranger.caller.workspace, slug="tidy", name="Tidy", description="Tidies.")
    task = strange.send("Book it.")
    decide(task, Decision.ASK, "For how many?")
    for slug in ("chat", "tidy"):
        grant_add(caller=stranger.caller, slug=slug, level=Level.ACT)
    answer = {"message": message("Four.", taskId=task["id"]), "metadata": named}
    assert state_of(strange.result("SendMessage", answer)["task"]) == "AUTH_REQUIRED"
    review = waiting_review_of(task)
    assert (review.request, review.skill) == ("Book it.", "chat")
    assert [line["text"] for line in review.thread] == ["For how many?", "Four."]
    decide(task, Decision.APPROVE)
    assert text_of(strange.wait(task["id"], "COMPLETED")) == "Book it.\n\nFour."


@pytest.mark.parametrize("state", ["canceled", "failed", "rejected"])
def test_a_review_whose_task_ended_otherwise_is_void(strange: Api, state: str) -> None:
    """The process that ended the task died before it voided the review. The same request again is a new task."""
    task = strange.send("Book it.")
    Task.objects.filter(pk=task["id"]).update(state=state)
    orphaned_reviews_void()
    assert review_of(task).state == State.VOID
    assert Notification.objects.get(task=task["id"], kind="review").read_at is not None
    assert strange.send("Book it.")["id"] != task["id"]


def test_a_request_that_waits_is_joined_at_a_higher_level_too(strange: Api, stranger: Keyed) -> None:
    task = strange.send("Book it.")
    Caller.objects.filter(pk=stranger.caller.pk).update(level=Level.LEARN)
    assert strange.send("Book it.")["id"] == task["id"]


def test_a_grant_is_for_the_skill_that_was_shown(strange: Api, stranger: Keyed) -> None:
    skill = Skill.objects.create(workspace=stranger.caller.workspace, slug="tidy", name="Tidy", description="Tidies.")
    grant_add(caller=stranger.caller, slug="tidy")
    task = strange.result("SendMessage", {"message": message("go"), "metadata": {"skill": "tidy"}})["task"]
    shown = review_of(task)
    Skill.objects.filter(pk=skill.pk).update(instructions="Delete everything.")
    with pytest.raises(ReviewChangedError):
        review_decide(review_id=shown.pk, decision=Decision.GRANT, digest=shown.digest)
    assert Grant.objects.get(caller=stranger.caller).level == ""
    assert review_of(task).digest != shown.digest
    decide(task, Decision.GRANT)
    assert Grant.objects.get(caller=stranger.caller).level == Level.ACT


def test_a_learned_skill_covers_no_files(strange: Api, stranger: Keyed) -> None:
    """No example says anything of any."""
    Caller.objects.filter(pk=stranger.caller.pk).update(level=Level.PROPOSE)
    draft = SkillDraft.objects.create(
        caller=stranger.caller,
        slug="learned-note",
        name="Note it",
        description="Notes it.",
        instructions="Note it.",
        examples=[f"Please note the parcel of {day}." for day in ("Monday", "Tuesday", "Saturday")],
        decision="approve",
    )
    words = {"text": "Please note the parcel of Sunday."}
    assert review_of(strange.send(parts=[words, FILE])).draft is None
    draft_approve(draft=draft, version=draft.version)
    assert state_of(strange.send(parts=[{"text": "Please note the parcel of Friday."}, FILE])) == "AUTH_REQUIRED"
    assert state_of(strange.send("Please note the parcel of Friday.")) == "COMPLETED"


def test_the_cap_on_waiting_requests_holds_when_many_come_at_once(strange: Api, stranger: Keyed) -> None:
    Review.objects.bulk_create(
        Review(
            caller=stranger.caller,
            task=(
                made := Task.objects.create(
                    caller=stranger.caller,
                    session=stranger.caller.workspace.sessions.create(kind="inbound", scope=str(uuid.uuid4())),
                    context_id="c",
                    state="auth_required",
                )
            ).pk,
            skill="chat",
            level=Level.OBSERVE,
            request="x",
            digest="x",
            request_digest=str(made.pk),
            expires_at=timezone.now() + timedelta(days=1),
        )
        for _ in range(98)
    )
    with ThreadPoolExecutor(6) as threads:
        tasks = list(threads.map(lambda number: strange.send(f"sleep: 1\nrequest {number}"), range(6)))
    assert sorted(map(state_of, tasks)) == ["AUTH_REQUIRED"] * 2 + ["REJECTED"] * 4


def test_a_stale_summary_is_not_shown_for_new_words(strange: Api, stranger: Keyed) -> None:
    task = strange.send("Book it.")
    note_write(
        workspace_id=stranger.caller.workspace_id,
        namespace=f"a2a-inbox/{task['id']}",
        key="summary",
        text="Harmless.",
    )
    decide(task, Decision.ASK, "Sure?")
    strange.send("fail: the model is away", taskId=task["id"])
    review = waiting_review_of(task)
    assert review.summary != "Harmless."
    assert "could not sum up the request" in review.note


def test_a_decision_settles_what_was_to_be_told_of_it(strange: Api) -> None:
    task = strange.send("Book it.")
    decide(task, Decision.DECLINE)
    told = Notification.objects.get(task=task["id"])
    assert told.read_at is not None
    assert told.delivered_at is not None
    assert AuditEntry.objects.filter(action="review.decline").count() == 1

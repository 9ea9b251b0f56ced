"""Reports to the owner of requests that were done without a review, with every outcome."""

import signal
from datetime import timedelta

from django.utils import timezone

from a2a_server.models import Task
from tests.conftest import Keyed
from tests.product import Api, Product, message, question_of, state_of
from tests.reviewing import Decision, decide
from tests.waiting import wait_for
from trust.models import Skill
from trust.services import grant_add, grant_revoke
from volcanic.models import Notification

WRITE = 'tool: write_file {"path": "notes.txt", "content": "x"}'
USED = "Tools used: write_file.\nFiles touched: notes.txt."


def reports() -> list[str]:
    """Returns what the owner was told of what was done, oldest first."""
    return list(Notification.objects.filter(kind="report").order_by("id").values_list("text", flat=True))


def has_written(task: dict[str, str]) -> bool:
    """Whether a run has used what `WRITE` uses."""
    return Task.objects.filter(pk=task["id"], pending_report__contains="Files touched").exists()


def test_what_was_used_before_the_caller_canceled(api: Api, product: Product) -> None:
    task = api.send(f"{WRITE}\nsleep: 600", at_once=True)
    wait_for(lambda: has_written(task))
    api.result("CancelTask", {"id": task["id"]})
    product.lets_go_of(task["id"])
    (told,) = reports()
    assert told == f"Asked: {WRITE} sleep: 600\n{USED}\nCanceled."


def test_what_an_approved_run_used_before_it_was_canceled(strange: Api, stranger: Keyed, product: Product) -> None:
    Skill.objects.create(workspace=stranger.caller.workspace, slug="tidy", name="Tidy", description="Tidies.")
    grant_add(caller=stranger.caller, slug="tidy")
    asked = message(f"{WRITE}\nsleep: 600", metadata={"skill": "tidy"})
    task = strange.result("SendMessage", {"message": asked})["task"]
    decide(task, Decision.APPROVE)
    wait_for(lambda: has_written(task))
    strange.result("CancelTask", {"id": task["id"]})
    product.lets_go_of(task["id"])
    assert [told.splitlines()[-1] for told in reports()] == ["Canceled."]


def test_what_was_used_before_the_owner_stopped_it(api: Api, friend: Keyed, product: Product) -> None:
    task = api.send(f"{WRITE}\nsleep: 600", at_once=True)
    wait_for(lambda: has_written(task))
    grant_revoke(caller=friend.caller, slug="chat", stop=True)
    product.lets_go_of(task["id"])
    (told,) = reports()
    assert told.splitlines()[1:] == [*USED.splitlines(), "Canceled: The owner took the grant for this back."]


def test_what_was_used_before_the_worker_died(api: Api, product: Product) -> None:
    task = api.send(f"{WRITE}\nsleep: 600", at_once=True)
    wait_for(lambda: has_written(task))
    product.signal("worker", signal.SIGKILL)
    Task.objects.filter(pk=task["id"]).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert question_of(api.get(task["id"])) == "server restarted"
    api.get(task["id"])
    (told,) = reports()
    assert told.splitlines()[-1] == "Failed: server restarted"
    product.revive()


def test_what_was_used_before_a_question_and_after_it(api: Api) -> None:
    """Each of the two is told, with the request that it was for."""
    task = api.send(f"{WRITE}\nask: Go on?\ntool: recall {{}}\ndone")
    assert state_of(task) == "INPUT_REQUIRED"
    assert reports() == [f"Asked: {WRITE} ask: Go on? tool: recall {{}} done\nAsks the agent: Go on?\n{USED}"]
    api.send("yes", taskId=task["id"])
    assert reports()[1].splitlines()[1:] == [
        "Then: yes",
        "Answered: Nothing was remembered about that. done",
        "Tools used: recall.",
    ]


def test_a_question_is_reported_too(api: Api) -> None:
    """The question was sent to the caller, so it is reported."""
    task = api.send("ask: Go on?\ndone")
    assert reports() == ["Asked: ask: Go on? done\nAsks the agent: Go on?"]
    api.result("CancelTask", {"id": task["id"]})
    assert len(reports()) == 1


def test_what_was_answered_before_the_caller_canceled(api: Api, product: Product) -> None:
    """No tool was used, but the caller has the text."""
    task = api.send("stream: 30000", at_once=True)
    wait_for(lambda: "artifacts" in api.get(task["id"]))
    api.result("CancelTask", {"id": task["id"]})
    product.lets_go_of(task["id"])
    (told,) = reports()
    assert told.startswith("Asked: stream: 30000\nAnswered so far: chunk 1 chunk 2")
    assert told.endswith("\nCanceled.")


def test_what_the_owner_approved_and_the_worker_left_undone(strange: Api, stranger: Keyed, product: Product) -> None:
    Skill.objects.create(workspace=stranger.caller.workspace, slug="tidy", name="Tidy", description="Tidies.")
    grant_add(caller=stranger.caller, slug="tidy")
    asked = message("sleep: 600", metadata={"skill": "tidy"})
    task = strange.result("SendMessage", {"message": asked})["task"]
    decide(task, Decision.APPROVE)
    wait_for(lambda: Task.objects.get(pk=task["id"]).pending_report)
    product.signal("worker", signal.SIGKILL)
    Task.objects.filter(pk=task["id"]).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    strange.get(task["id"])
    assert reports() == ["Asked for Tidy: sleep: 600\nFailed: server restarted"]
    product.revive()


def test_what_is_only_read_is_no_report(strange: Api, product: Product) -> None:
    task = strange.send("sleep: 600", at_once=True)
    wait_for(lambda: Task.objects.get(pk=task["id"]).repeatable)
    strange.result("CancelTask", {"id": task["id"]})
    product.lets_go_of(task["id"])
    assert reports() == []


def test_a_task_that_is_canceled_while_it_asks_was_told_of_already(api: Api) -> None:
    task = api.send(f"{WRITE}\nask: Go on?")
    api.result("CancelTask", {"id": task["id"]})
    assert len(reports()) == 1

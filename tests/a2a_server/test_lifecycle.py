"""The life of a task, as its caller sees it."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from a2a_server.models import Task, TaskEvent
from tests.conftest import Keyed
from tests.product import Api, Product, message, question_of, state_of, text_of
from tests.waiting import wait_for
from trust.models import AuditEntry
from volcanic.models import Session, Turn


def test_a_message_becomes_a_task_and_every_step_a_row(api: Api, friend: Keyed) -> None:
    task = api.send("hello")
    assert (state_of(task), text_of(task)) == ("COMPLETED", "hello")
    assert api.get(task["id"]) == task
    row = Task.objects.get(pk=task["id"])
    assert (row.caller, row.attempt, row.lease_expires_at) == (friend.caller, 1, None)
    payloads = TaskEvent.objects.filter(task=row).order_by("seq").values_list("payload", flat=True)
    assert [next(iter(payload)) for payload in payloads] == [
        "statusUpdate",
        "statusUpdate",
        "artifactUpdate",
        "statusUpdate",
    ]
    turn = Turn.objects.get(session=row.session)
    assert (turn.prompt, turn.origin, turn.state) == ("hello", f"task:{task['id']}", "completed")
    friend.caller.refresh_from_db()
    assert friend.caller.interaction_count == 1
    assert friend.caller.first_seen_at == friend.caller.last_interaction_at


def test_a_named_skill_without_the_grant_is_rejected_with_a_reason(api: Api, product: Product) -> None:
    """What is missing, and what would lead to the owner all the same."""
    task = api.send(metadata={"skill": "query-availability"})
    assert state_of(task) == "REJECTED"
    assert "not granted" in question_of(task)
    assert "plain request" in question_of(task)
    assert not Turn.objects.exists()
    line = wait_for(lambda: AuditEntry.objects.filter(action="request.refused").first())
    assert (line.caller, line.subject, line.actor) == ("friend", "query-availability", "caller friend")


def test_a_misspelt_skill_runs_nothing_and_the_caller_is_told_what_comes_near(api: Api) -> None:
    task = api.send(metadata={"skill": "query-availabilities"})
    assert state_of(task) == "REJECTED"
    assert "Did you mean query-availability?" in question_of(task)


def test_return_immediately(api: Api) -> None:
    """`true` returns the task in progress; unset waits."""
    task = api.send("sleep: 600", at_once=True)
    assert state_of(task) in ("SUBMITTED", "WORKING")
    api.result("CancelTask", {"id": task["id"]})
    assert text_of(api.send("done")) == "done"


def test_a_question_and_its_answer(api: Api) -> None:
    """The blocking call returns with the question; the context is inferred from the task."""
    task = api.send("ask: which day?")
    assert (state_of(task), question_of(task)) == ("INPUT_REQUIRED", "which day?")
    answered = api.send("monday", taskId=task["id"])
    assert (state_of(answered), text_of(answered)) == ("COMPLETED", "You said: monday")
    assert answered["contextId"] == task["contextId"]
    roles = [entry["role"] for entry in answered["history"]]
    assert roles == ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]
    assert {entry["contextId"] for entry in answered["history"]} == {task["contextId"]}
    assert {entry["taskId"] for entry in answered["history"]} == {task["id"]}
    assert Task.objects.get(pk=task["id"]).attempt == 2


@pytest.mark.parametrize("script", ["hello", "fail: no luck"])
def test_a_task_that_has_ended_takes_no_message(api: Api, script: str) -> None:
    """-32004, on both ways to send."""
    task = api.send(script)
    params = {"message": message(taskId=task["id"])}
    assert api.error("SendMessage", params) == -32004
    assert api.error("SendStreamingMessage", params) == -32004
    assert api.http.post("/a2a/v1/message:send", json=params).status_code == 400
    assert len(api.get(task["id"])["history"]) == 1


def test_a_canceled_task_takes_no_message(api: Api) -> None:
    """Canceled twice is -32002, continued is -32004."""
    task = api.send("ask: well?")
    assert state_of(api.result("CancelTask", {"id": task["id"]})) == "CANCELED"
    assert api.error("CancelTask", {"id": task["id"]}) == -32002
    assert api.error("SendMessage", {"message": message(taskId=task["id"])}) == -32004


@pytest.mark.parametrize("script", ["hello", "fail: no luck"])
def test_cancel_of_a_task_that_has_ended(api: Api, script: str) -> None:
    """-32002, 400 on REST."""
    task = api.send(script)
    assert api.error("CancelTask", {"id": task["id"]}) == -32002
    assert api.http.post(f"/a2a/v1/tasks/{task['id']}:cancel").status_code == 400
    assert state_of(api.get(task["id"])) == state_of(task)


def test_cancel_reaches_a_running_turn(api: Api, product: Product) -> None:
    """The turn ends long before its own time, and nothing is written after the terminal state."""
    task = api.send("sleep: 600\ntoo late", at_once=True)
    api.wait(task["id"], "WORKING")
    canceled = api.result("CancelTask", {"id": task["id"]})
    assert state_of(canceled) == "CANCELED"
    product.lets_go_of(task["id"])
    last = TaskEvent.objects.filter(task_id=task["id"]).order_by("seq").last()
    assert last is not None
    assert last.payload["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"
    assert "artifacts" not in api.get(task["id"])
    assert Turn.objects.filter(origin=f"task:{task['id']}").count() == 0


def test_a_mismatched_context_is_refused(api: Api) -> None:
    """-32602, and the task is as it was."""
    task = api.send("ask: well?")
    params = {"message": message(taskId=task["id"], contextId="another")}
    assert api.error("SendMessage", params) == -32602
    assert api.get(task["id"]) == task


def test_a_task_that_is_not_there(api: Api) -> None:
    """§3.4.2: a client can't name a new task."""
    for task_id in (str(uuid.uuid4()), "my-own-id", "x" * 5000):
        assert api.error("SendMessage", {"message": message(taskId=task_id)}) == -32001
        assert api.error("GetTask", {"id": task_id}) == -32001
        assert api.error("CancelTask", {"id": task_id}) == -32001
        assert api.error("SubscribeToTask", {"id": task_id}) == -32001


def test_a_context_is_busy_while_a_task_runs_in_it(api: Api) -> None:
    """The second is refused, and says when to try again; another context is free."""
    task = api.send("sleep: 600", at_once=True, contextId="trip")
    answer = api.rpc("SendMessage", {"message": message(contextId="trip")})
    assert answer["error"]["code"] == -32004
    assert answer["error"]["message"] == "context busy, retry when the current task ends"
    assert state_of(api.send(contextId="other")) == "COMPLETED"
    assert api.error("SendMessage", {"message": message(taskId=task["id"])}) == -32004
    api.result("CancelTask", {"id": task["id"]})
    assert state_of(api.send(contextId="trip")) == "COMPLETED"
    assert api.result("ListTasks", {"contextId": "trip"})["totalSize"] == 2


def test_one_of_two_racing_answers_wins(api: Api) -> None:
    """One run, and no trace of the other message."""
    for _ in range(5):
        task = api.send("ask: well?")
        bodies = [{"message": message(text, taskId=task["id"])} for text in ("one", "two", "three")]
        with ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(lambda body: api.rpc("SendMessage", body), bodies))
        won = [answer["result"]["task"] for answer in answers if "result" in answer]
        lost = [answer["error"]["code"] for answer in answers if "error" in answer]
        assert (len(won), lost) == (1, [-32004, -32004])
        assert len(api.get(task["id"])["history"]) == 3
        assert Task.objects.get(pk=task["id"]).attempt == 2


def test_two_new_tasks_in_one_context_at_once(api: Api) -> None:
    """Each message is either run alone or refused; no answer is mixed."""
    bodies = [{"message": message(f"text {number}", contextId="same")} for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda body: api.rpc("SendMessage", body), bodies))
    for number, answer in enumerate(answers):
        if "result" in answer:
            assert text_of(answer["result"]["task"]) == f"text {number}"
        else:
            assert answer["error"]["code"] == -32004
    assert Session.objects.count() == 1


def test_failures_are_told_redacted(api: Api) -> None:
    """The provider's error without its secrets; the task has failed."""
    task = api.send("fail: bad key sk-abcdefgh12345678 for you")
    assert state_of(task) == "FAILED"
    assert "sk-abcdefgh" not in question_of(task)
    assert "[redacted]" in question_of(task)


def test_a_reply_at_the_length_limit_is_complete(api: Api) -> None:
    task = api.send("long")
    assert state_of(task) == "COMPLETED"
    assert text_of(task)


def test_each_run_replaces_the_response(api: Api) -> None:
    task = api.send("first\nask: more?\nsecond")
    task = api.send("yes", taskId=task["id"])
    assert state_of(task) == "COMPLETED"
    assert "second" in text_of(task)
    assert "first" not in text_of(task)


def test_memory_is_kept_by_caller_and_context(api: Api, product: Product, second_friend: Keyed) -> None:
    """The same context id is another conversation for another caller."""
    api.send("one", contextId="shared")
    api.send("two", contextId="shared")
    with product.api(second_friend.key) as other:
        task = other.send("three", contextId="shared")
        assert other.result("ListTasks", {"contextId": "shared"})["totalSize"] == 1
    session = Task.objects.get(pk=task["id"]).session
    assert [turn.prompt for turn in session.turns.all()] == ["three"]
    assert Session.objects.count() == 2


@pytest.mark.parametrize("wanted", [0, 1, 2, 5, None])
def test_history_length(api: Api, wanted: int | None) -> None:
    """§3.2.4, wherever it can be given."""
    task = api.send("ask: well?")
    task = api.send("fine", taskId=task["id"])
    expected = task["history"] if wanted is None else task["history"][len(task["history"]) - min(wanted, 3) :]
    limit = {} if wanted is None else {"historyLength": wanted}
    seen: list[Any] = [
        api.get(task["id"], **limit),
        api.result("ListTasks", limit)["tasks"][0],
        api.http.get(f"/a2a/v1/tasks/{task['id']}", params=limit).json(),
    ]
    for view in seen:
        entries = [{"messageId": entry["messageId"]} for entry in view.get("history", [])]
        assert entries == [{"messageId": entry["messageId"]} for entry in expected]
    if wanted == 0:
        assert "history" not in seen[0]
    configuration = {"configuration": limit, "message": message("ask: again?")}
    assert len(api.result("SendMessage", configuration)["task"].get("history", [])) == (0 if wanted == 0 else 1)


def test_a_negative_history_length_is_refused(api: Api) -> None:
    task = api.send()
    assert api.error("GetTask", {"id": task["id"], "historyLength": -1}) == -32602
    assert api.error("ListTasks", {"historyLength": -1}) == -32602


def test_referenced_tasks_are_told_to_the_assistant_and_only_the_callers_own(
    api: Api, product: Product, second_friend: Keyed
) -> None:
    """§3.4.3: another's task is as if it did not exist."""
    with product.api(second_friend.key) as other:
        foreign = other.send("a secret")
    own = api.send("a known thing")
    task = api.send("again", referenceTaskIds=[own["id"], foreign["id"], "no-uuid"])
    assert state_of(task) == "COMPLETED"
    turn = Turn.objects.get(origin=f"task:{task['id']}")
    assert "a known thing" in str(turn.messages)
    assert "a secret" not in str(turn.messages)

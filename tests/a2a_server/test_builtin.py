"""The skills that answer where the request arrives: no model, no worker."""

import signal
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from a2a_server.models import InboundFile, Task, TaskEvent
from tests.conftest import Keyed
from tests.product import Api, Product, message, question_of, state_of, text_of
from tests.receiver import Receiver
from tests.reviewing import Decision, decide
from tests.waiting import wait_for
from trust.models import Level
from trust.services import grant_add
from volcanic.models import Notification, Prompt, Session, Turn, WorkingNote
from volcanic.presence import owner_seen


@pytest.fixture
def served(api: Api, product: Product) -> Product:
    """The product, running."""
    return product


def _ask(api: Api, skill: str, text: str = "hello", **members: object) -> dict[str, object]:
    params = {"message": message(text, **members), "metadata": {"skill": skill}}
    task: dict[str, object] = api.result("SendMessage", params)["task"]
    return task


@pytest.mark.parametrize("name", ["notify-user", "Notify User", "notify_user"])
def test_notify_user_is_for_everybody(served: Product, stranger: Keyed, name: str) -> None:
    with served.api(stranger.key) as strange:
        task = _ask(strange, name, "The parcel is at the neighbour's.")
        again = strange.get(str(task["id"]))
    assert (state_of(task), text_of(task)) == ("COMPLETED", "Passed on to the owner.")
    assert again == task
    told = Notification.objects.get()
    assert (told.kind, told.caller, told.text) == ("message", "stranger", "The parcel is at the neighbour's.")
    assert (str(told.task), told.delivered_at, told.read_at, told.urgent) == (task["id"], None, None, False)
    note = WorkingNote.objects.get()
    assert (note.namespace, note.text) == (f"a2a-inbox/{task['id']}", "The parcel is at the neighbour's.")
    assert timedelta(hours=23) < note.expires_at - timezone.now() < timedelta(hours=25)
    stranger.caller.refresh_from_db()
    assert stranger.caller.interaction_count == 1
    assert stranger.caller.last_interaction_at is not None
    assert not Turn.objects.exists()


def test_no_worker_has_a_part_in_it(served: Product, stranger: Keyed) -> None:
    served.signal("worker", signal.SIGKILL)
    grant_add(caller=stranger.caller, slug="query-availability", level=Level.ACT)
    with served.api(stranger.key) as strange:
        assert state_of(_ask(strange, "notify-user")) == "COMPLETED"
        assert state_of(_ask(strange, "query-availability")) == "COMPLETED"


def test_its_task_is_like_any_other(served: Product, stranger: Keyed) -> None:
    """Listed, in a context, with events, a duplicate joined, and refused to be continued."""
    with served.api(stranger.key) as strange:
        sent = {"message": message("once", contextId="here"), "metadata": {"skill": "notify-user"}}
        task = strange.result("SendMessage", sent)["task"]
        assert strange.result("SendMessage", sent)["task"]["id"] == task["id"]
        assert Notification.objects.count() == 1
        assert task["contextId"] == "here"
        assert strange.result("ListTasks", {"contextId": "here"})["totalSize"] == 1
        assert strange.error("SendMessage", {"message": message("more", taskId=task["id"])}) == -32004
        with strange.stream("SendStreamingMessage", {**sent, "message": message("streamed")}) as events:
            (only,) = list(events)
        assert state_of(only["task"]) == "COMPLETED"
    payloads = TaskEvent.objects.filter(task=task["id"]).order_by("seq").values_list("seq", "payload")
    assert [(seq, next(iter(payload))) for seq, payload in payloads] == [(1, "artifactUpdate"), (2, "statusUpdate")]


def test_a_webhook_is_told_of_it(api: Api, product: Product, stranger: Keyed) -> None:
    with Receiver() as hook, product.api(stranger.key) as strange:
        params = {
            "message": message("hello"),
            "metadata": {"skill": "notify-user"},
            "configuration": {"taskPushNotificationConfig": {"url": hook.url}},
        }
        task = strange.result("SendMessage", params)["task"]
        wait_for(lambda: hook.accepted)
    assert task["id"] in hook.accepted[-1].body.decode()


@pytest.mark.parametrize("parts", [[{"text": "  \n"}], [{"text": ""}]])
def test_there_must_be_a_text(served: Product, stranger: Keyed, parts: list[dict[str, str]]) -> None:
    """A transport-level error, and no task."""
    with served.api(stranger.key) as strange:
        params = {"message": message(parts=parts), "metadata": {"skill": "notify-user"}}
        assert strange.error("SendMessage", params) == -32602
    assert not Task.objects.exists()
    assert not Notification.objects.exists()


def test_it_takes_no_files(served: Product, stranger: Keyed) -> None:
    with served.api(stranger.key) as strange:
        parts = [{"text": "look"}, {"raw": "aGk=", "filename": "a.txt"}]
        params = {"message": message(parts=parts), "metadata": {"skill": "notify-user"}}
        assert strange.error("SendMessage", params) == -32005
    assert not InboundFile.objects.exists()


def test_an_owner_who_reads_nothing_is_not_buried(served: Product, stranger: Keyed) -> None:
    Notification.objects.bulk_create(
        Notification(workspace=stranger.caller.workspace, caller="stranger", kind="message", text=str(number))
        for number in range(1000)
    )
    with served.api(stranger.key) as strange:
        params = {"message": message("one more"), "metadata": {"skill": "notify-user"}}
        assert strange.error("SendMessage", params) == -32004
        Notification.objects.filter(text="7").update(read_at=timezone.now())
        assert state_of(_ask(strange, "notify-user")) == "COMPLETED"


def test_query_availability(served: Product, friend: Keyed, owner: User) -> None:
    """Busy while a prompt of the owner's runs, available within five minutes of their last action, else away."""
    grant_add(caller=friend.caller, slug="query-availability")
    session = Session.objects.create(workspace=friend.caller.workspace, kind="owner", scope="own")

    def status(api: Api) -> str:
        task = _ask(api, "query-availability")
        assert state_of(task) == "COMPLETED"
        artifacts: list[dict[str, list[dict[str, dict[str, str]]]]] = task["artifacts"]  # type: ignore[assignment]
        data, text = artifacts[0]["parts"]
        assert data["data"]["status"] in str(text["text"])
        return data["data"]["status"]

    with served.api(friend.key) as api:
        assert status(api) == "away"
        owner_seen(owner.pk)
        assert status(api) == "available"
        lease = timezone.now() + timedelta(minutes=1)
        Prompt.objects.create(session=session, origin="chat", text="x", state="running", lease_expires_at=lease)
        assert status(api) == "busy"
        Prompt.objects.update(state="completed", lease_expires_at=None)
        assert status(api) == "available"
    reports = Notification.objects.filter(kind="report").order_by("id")
    assert [report.text.rsplit(" ", 1)[1] for report in reports] == ["away.", "available.", "busy.", "available."]


def test_an_approved_query_is_answered_without_a_model(api: Api, product: Product, stranger: Keyed) -> None:
    grant_add(caller=stranger.caller, slug="query-availability")
    with product.api(stranger.key) as strange:
        task = _ask(strange, "query-availability", "fail: no model is asked")
        assert state_of(task) == "AUTH_REQUIRED"
        decide(task, Decision.GRANT)
        done = strange.wait(str(task["id"]), "COMPLETED")
        assert done["artifacts"][0]["parts"][0]["data"] == {"status": "away"}
        # From then on without the owner.
        assert state_of(_ask(strange, "query-availability")) == "COMPLETED"


def test_hops_count_here_too(served: Product, stranger: Keyed) -> None:
    with served.api(stranger.key) as strange:
        params = {"message": message("hi"), "metadata": {"skill": "notify-user", "volcanic.hops": 9}}
        task = strange.result("SendMessage", params)["task"]
    assert (state_of(task), "hops" in question_of(task)) == ("FAILED", True)
    assert not Notification.objects.exists()

"""Webhooks: what they get, in what order, and what they never get. The receiver is a real server."""

import signal
import uuid
from functools import partial
from typing import Any

import pytest
from standardwebhooks import Webhook

from a2a_server.models import PushConfig, PushDelivery, Task, TaskEvent
from a2a_server.services import tasks_sweep
from tests.conftest import Keyed
from tests.product import Api, Product, message, question_of, state_of, text_of
from tests.receiver import Received, Receiver
from tests.waiting import wait_for
from trust.services import webhook_secret_rotate


def _inline(receiver: Receiver, text: str = "hello", path: str = "/", **config: Any) -> dict[str, Any]:
    return {
        "message": message(text),
        "configuration": {"taskPushNotificationConfig": {"url": receiver.url + path, **config}},
    }


def _told(receiver: Receiver, path: str, states: list[str]) -> bool:
    return receiver.states(path) == states


def _create(api: Api, task: dict[str, Any], url: str, **members: Any) -> dict[str, Any]:
    config: dict[str, Any] = api.result(
        "CreateTaskPushNotificationConfig", {"taskId": task["id"], "url": url, **members}
    )
    return config


def test_every_status_change_of_every_way_to_send(api: Api) -> None:
    """Blocking, at once, streaming, on both bindings; then an answer by another call, then a cancel."""
    with Receiver() as receiver:
        api.result("SendMessage", _inline(receiver, path="/blocking"))
        at_once = _inline(receiver, path="/at-once")
        at_once["configuration"]["returnImmediately"] = True
        api.result("SendMessage", at_once)
        with api.stream("SendStreamingMessage", _inline(receiver, path="/stream")) as events:
            list(events)
        api.http.post("/a2a/v1/message:send", json=_inline(receiver, path="/rest"))
        asked = api.result("SendMessage", _inline(receiver, "ask: well?\nask: sure?", path="/asked"))["task"]
        api.send("fine", taskId=asked["id"])
        api.result("CancelTask", {"id": asked["id"]})
        once = ["SUBMITTED", "WORKING", "COMPLETED"]
        for path in ("/blocking", "/at-once", "/stream", "/rest"):
            wait_for(partial(_told, receiver, path, once))
        twice = ["SUBMITTED", "WORKING", "INPUT_REQUIRED"] * 2
        wait_for(lambda: receiver.states("/asked")[-1:] == ["CANCELED"])
        assert receiver.states("/asked") == [*twice, "CANCELED"]


def test_what_is_sent_is_the_task_as_it_was_at_that_event(api: Api) -> None:
    """Even when it is sent late: nothing of what came after shows."""
    task = api.send("first\nask: well?")
    api.send("fine", taskId=task["id"])
    with Receiver() as receiver:
        config = _create(api, task, receiver.url)
        wait_for(lambda: receiver.accepted)
        # Owed again, from the beginning.
        row = PushConfig.objects.get(task_id=task["id"], config_id=config["id"])
        told = TaskEvent.objects.filter(task_id=task["id"], payload__has_key="statusUpdate").order_by("seq")
        seqs = list(told.values_list("seq", flat=True))[:-1]
        PushDelivery.objects.filter(config=row).delete()
        for seq in seqs:
            PushDelivery.objects.create(config=row, seq=seq)
        _create(api, task, receiver.url, id=config["id"])  # the last one, and a message for the worker
        wait_for(lambda: len(receiver.accepted) == 7)
        sent = [request.json["task"] for request in receiver.accepted[1:]]
    states = [state_of(view) for view in sent]
    assert states == ["SUBMITTED", "WORKING", "INPUT_REQUIRED", "SUBMITTED", "WORKING", "COMPLETED"]
    assert [len(view["history"]) for view in sent] == [1, 1, 1, 3, 3, 3]
    assert question_of(sent[2]) == "well?"
    assert "artifacts" not in sent[0]
    assert sent[-1] == api.get(task["id"])


def test_a_webhook_that_comes_late_gets_the_task_as_it_is_once(api: Api) -> None:
    """Nothing between the answer and the registration is lost."""
    task = api.send("hello")
    with Receiver() as receiver:
        _create(api, task, receiver.url)
        wait_for(lambda: receiver.states() == ["COMPLETED"])
        assert receiver.accepted[0].json == {"task": api.get(task["id"])}
        assert receiver.accepted[0].headers["content-type"] == "application/a2a+json"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, {}),
        ({"token": "t0ken"}, {"x-a2a-notification-token": "t0ken"}),
        ({"authentication": {"scheme": "Bearer", "credentials": "cr3d"}}, {"authorization": "Bearer cr3d"}),
        ({"authentication": {"scheme": "Basic", "credentials": "dTpw"}}, {"authorization": "Basic dTpw"}),
        (
            {"token": "t0ken", "authentication": {"scheme": "bearer", "credentials": "cr3d"}},
            {"x-a2a-notification-token": "t0ken", "authorization": "bearer cr3d"},
        ),
        ({"authentication": {"scheme": "Bearer"}}, {}),
    ],
)
def test_credentials_are_sent_and_never_shown(
    api: Api, product: Product, config: dict[str, Any], expected: dict[str, str]
) -> None:
    """As headers to the webhook, and nowhere else: not in answers, logs or the database's text."""
    with Receiver() as receiver:
        task = api.result("SendMessage", _inline(receiver, **config))["task"]
        wait_for(lambda: receiver.states()[-1:] == ["COMPLETED"])
        headers = receiver.accepted[0].headers
    assert {name: headers.get(name) for name in ("x-a2a-notification-token", "authorization")} == {
        "x-a2a-notification-token": None,
        "authorization": None,
    } | expected
    (row,) = PushConfig.objects.filter(task_id=task["id"])
    shown = [
        api.result("GetTaskPushNotificationConfig", {"taskId": task["id"], "id": row.config_id}),
        api.result("ListTaskPushNotificationConfigs", {"taskId": task["id"]}),
        _create(api, task, receiver.url, **config),
    ]
    stored = PushConfig.objects.filter(pk=row.pk).extra(select={"raw": "token || auth_credentials"}).values("raw")
    for secret in ("t0ken", "cr3d", "dTpw"):
        assert secret not in str(shown)
        assert secret not in str(list(stored))
        assert secret not in product.log("worker") + product.log("web")


def test_signatures(api: Api, friend: Keyed) -> None:
    """Standard Webhooks: verifiable with the secret that the owner was shown, the id the same over retries."""
    secret = webhook_secret_rotate(caller=friend.caller)
    with Receiver(lambda _request, number: 503 if number == 1 else 200) as receiver:
        api.result("SendMessage", _inline(receiver))
        wait_for(lambda: receiver.states()[-1:] == ["COMPLETED"])
    for request in receiver.received:
        assert Webhook(secret).verify(request.body, request.headers) == request.json
    ids = [request.headers["webhook-id"] for request in receiver.received]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


def test_order_is_kept_over_retries(api: Api) -> None:
    """A later event waits for an earlier one's retries."""
    failing = {1, 2}
    with Receiver(lambda _request, number: 500 if number in failing else 200) as receiver:
        api.result("SendMessage", _inline(receiver))
        wait_for(lambda: receiver.states() == ["SUBMITTED", "WORKING", "COMPLETED"])
        tried = [state_of(request.json["task"]) for request in receiver.received]
    assert tried == ["SUBMITTED", "SUBMITTED", "SUBMITTED", "WORKING", "COMPLETED"]


def test_a_webhook_that_hangs_holds_no_other_up(api: Api) -> None:
    """Not another task's, not another of the same task, not the task itself."""
    with Receiver(lambda _request, _number: None) as hanging, Receiver() as good:
        tasks = [api.result("SendMessage", _inline(hanging, path=f"/{number}"))["task"] for number in range(20)]
        assert {state_of(task) for task in tasks} == {"COMPLETED"}
        for task in tasks:
            _create(api, task, f"{good.url}/{task['id']}")
        wait_for(lambda: len(good.accepted) == 20)
        assert len({request.path for request in hanging.received}) == 20


def test_410_deletes_the_webhook(api: Api) -> None:
    with Receiver(lambda _request, _number: 410) as receiver:
        task = api.result("SendMessage", _inline(receiver))["task"]
        wait_for(lambda: not PushConfig.objects.filter(task_id=task["id"]).exists())
        assert api.result("ListTaskPushNotificationConfigs", {"taskId": task["id"]}) == {}


def test_a_webhook_deleted_while_its_task_runs_breaks_nothing(api: Api) -> None:
    """By its caller, again and again, at the moment when events happen."""
    with Receiver() as receiver:
        for _ in range(15):
            params = _inline(receiver, "stream: 3", id="mine")
            params["configuration"]["returnImmediately"] = True
            task = api.result("SendMessage", params)["task"]
            api.result("DeleteTaskPushNotificationConfig", {"taskId": task["id"], "id": "mine"})
            api.wait(task["id"], "COMPLETED")
    assert not PushConfig.objects.exists()
    assert not PushDelivery.objects.exists()


def test_a_redirect_is_not_followed(api: Api) -> None:
    """Its answer is all that is noted: what the webhook names may be an address inside."""
    with Receiver(lambda request, _number: 200 if request.path == "/elsewhere" else 307) as receiver:
        task = api.result("SendMessage", _inline(receiver))["task"]
        wait_for(lambda: PushDelivery.objects.filter(config__task_id=task["id"], last_status=307).exists())
        assert {request.path for request in receiver.received} == {"/"}


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "https://10.0.0.1/",
        "https://[::ffff:10.0.0.1]/",
        "https://[::1]/",
        "https://0/",
        "https://167772161/",
        "https://0xa.1/",
        "ftp://example.com/",
        "https://user:pass@example.com/",
        "javascript:alert(1)",
        "/relative",
        "https://" + "x" * 3000,
    ],
)
def test_addresses_that_are_refused_at_registration(api: Api, url: str) -> None:
    """On every route, and nothing is left of the refused request."""
    task = api.send()
    config = {"taskId": task["id"], "url": url}
    assert api.error("CreateTaskPushNotificationConfig", config) == -32602
    inline = {"message": message(), "configuration": {"taskPushNotificationConfig": {"url": url}}}
    assert api.error("SendMessage", inline) == -32602
    assert api.error("SendStreamingMessage", inline) == -32602
    assert api.http.post("/a2a/v1/message:send", json=inline).status_code == 400
    assert api.http.post(f"/a2a/v1/tasks/{task['id']}/pushNotificationConfigs", json=config).status_code == 400
    assert not PushConfig.objects.exists()
    assert Task.objects.count() == 1


@pytest.mark.parametrize(
    "config",
    [
        {"url": ""},
        {"id": "with space"},
        {"id": "x" * 101},
        {"token": "line\nbreak"},
        {"authentication": {"scheme": "Be arer", "credentials": "x"}},
        {"authentication": {"scheme": "Bearer", "credentials": "a\r\nX-Evil: 1"}},
    ],
)
def test_configs_that_are_refused(api: Api, config: dict[str, Any]) -> None:
    task = api.send()
    params = {"taskId": task["id"], "url": "https://example.com/hook", **config}
    assert api.error("CreateTaskPushNotificationConfig", params) == -32602


def test_configs_over_both_bindings(api: Api) -> None:
    """Create, get, list in pages, delete twice; ids of the server's where none is given."""
    task = api.send()
    url = "https://hooks.invalid/x"
    made = _create(api, task, url)
    assert uuid.UUID(made["id"])
    assert (made["taskId"], made["url"]) == (task["id"], url)
    base = f"/a2a/v1/tasks/{task['id']}/pushNotificationConfigs"
    rest = api.http.post(base, json={"url": url, "id": "mine"})
    assert (rest.status_code, rest.json()["id"]) == (200, "mine")
    again = api.http.post(base, json={"url": url + "/2", "id": "mine"}).json()
    assert again["url"] == url + "/2"
    assert api.http.get(f"{base}/mine").json() == again
    third = _create(api, task, url)
    page = api.http.get(base, params={"pageSize": "2"}).json()
    assert [config["id"] for config in page["configs"]] == [made["id"], "mine"]
    rest_page = api.http.get(base, params={"pageSize": "2", "pageToken": page["nextPageToken"]}).json()
    assert [config["id"] for config in rest_page["configs"]] == [third["id"]]
    assert len(api.result("ListTaskPushNotificationConfigs", {"taskId": task["id"], "pageSize": 0})["configs"]) == 3
    assert api.http.get(base, params={"pageToken": "nonsense"}).status_code == 400
    for _ in range(2):
        assert api.http.delete(f"{base}/mine").status_code in (200, 204)
        api.result("DeleteTaskPushNotificationConfig", {"taskId": task["id"], "id": made["id"]})
    gone = {"taskId": task["id"], "id": made["id"]}
    assert api.error("GetTaskPushNotificationConfig", gone) == -32001
    assert api.error("DeleteTaskPushNotificationConfig", {"taskId": str(uuid.uuid4()), "id": "x"}) == -32001
    assert api.error("ListTaskPushNotificationConfigs", {"taskId": "nope"}) == -32001


def test_another_callers_webhooks_are_none(api: Api, product: Product, second_friend: Keyed) -> None:
    """None of the four calls tells a foreign task from an unknown one."""
    task = api.send()
    config = _create(api, task, "https://hooks.invalid/x", token="t0ken")
    with product.api(second_friend.key) as other:

        def ask(task_id: str) -> list[Any]:
            key = {"taskId": task_id, "id": config["id"]}
            return [
                other.rpc("CreateTaskPushNotificationConfig", {"taskId": task_id, "url": "https://hooks.invalid/evil"}),
                other.rpc("GetTaskPushNotificationConfig", key),
                other.rpc("ListTaskPushNotificationConfigs", {"taskId": task_id}),
                other.rpc("DeleteTaskPushNotificationConfig", key),
            ]

        assert ask(task["id"]) == ask(str(uuid.uuid4()))
    assert PushConfig.objects.count() == 1


def test_a_task_has_only_so_many_webhooks(api: Api) -> None:
    task = api.send()
    for number in range(10):
        _create(api, task, "https://hooks.invalid/x", id=f"c{number}")
    _create(api, task, "https://hooks.invalid/y", id="c3")  # replaced, not one more
    params = {"taskId": task["id"], "url": "https://hooks.invalid/x"}
    assert api.error("CreateTaskPushNotificationConfig", params) == -32602


def test_a_03_webhook_gets_the_bare_task(api: Api) -> None:
    """The whole task in the 0.3 shape, for each status change."""
    old = {"kind": "message", "role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hello"}]}
    with Receiver() as receiver:
        configuration = {"pushNotificationConfig": {"url": receiver.url, "token": "t0ken"}}
        task = api.rpc("message/send", {"message": old, "configuration": configuration})["result"]
        wait_for(lambda: receiver.states() == ["submitted", "working", "completed"])
        last = receiver.accepted[-1]
    assert last.json["kind"] == "task"
    assert last.json["artifacts"][0]["parts"][0] == {"kind": "text", "text": "hello"}
    assert last.headers["x-a2a-notification-token"] == "t0ken"
    listed = api.rpc("tasks/pushNotificationConfig/list", {"id": task["id"]})["result"]
    assert len(listed) == 1
    assert "t0ken" not in str(listed)


def test_a_worker_killed_in_mid_delivery_delivers_again(api: Api, product: Product) -> None:
    """At least once, and still in order: what was under way when it died is sent anew when the lease has passed."""

    def answer(_request: Received, number: int) -> int | None:
        return None if number == 1 else 200

    with Receiver(answer) as receiver:
        task = api.result("SendMessage", _inline(receiver))["task"]
        wait_for(lambda: receiver.received)
        product.signal("worker", signal.SIGKILL)
        product.start_worker()
        leased = PushDelivery.objects.filter(config__task_id=task["id"], lease_expires_at__isnull=False)
        assert leased.update(lease_expires_at="2000-01-01T00:00:00Z") == 1  # time passes
        product.sweep()
        wait_for(lambda: receiver.states() == ["SUBMITTED", "WORKING", "COMPLETED"])


def test_a_failure_by_the_sweep_is_told(api: Api, product: Product) -> None:
    """Nobody called, and the webhook still hears of it."""
    with Receiver() as receiver:
        params = _inline(receiver, "sleep: 600")
        params["configuration"]["returnImmediately"] = True
        task = api.result("SendMessage", params)["task"]
        wait_for(lambda: receiver.states() == ["SUBMITTED", "WORKING"])
        owed = PushDelivery.objects.filter(config__task_id=task["id"], state="pending")
        wait_for(lambda: not owed.exists())
        product.signal("worker", signal.SIGKILL)
        product.start_worker()
        Task.objects.filter(pk=task["id"]).update(lease_expires_at="2000-01-01T00:00:00Z")
        assert tasks_sweep()[0] == 1
        wait_for(lambda: receiver.states() == ["SUBMITTED", "WORKING", "FAILED"])


def test_text_is_the_same_in_streams_pushes_and_reads(api: Api) -> None:
    with Receiver() as receiver:
        task = api.result("SendMessage", _inline(receiver, "stream: 40"))["task"]
        wait_for(lambda: receiver.states()[-1:] == ["COMPLETED"])
        assert text_of(receiver.accepted[-1].json["task"]) == text_of(task)

"""The product with webhooks switched off: the card and all methods say so."""

from collections.abc import Iterator

import httpx
import pytest

from tests.conftest import Keyed
from tests.product import Api, Product, message
from tests.waiting import PATIENCE


@pytest.fixture
def off(transactional_db: None, friend: Keyed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The friend's view of a product without webhooks; only its web process is needed."""
    product = Product(tmp_path_factory.mktemp("push-off"), PUSH_ENABLED="false")
    try:
        product.start_web()
        with product.api(friend.key) as api:
            yield api
    finally:
        product.stop()


def test_push_is_declined_in_every_form(off: Api) -> None:
    """-32003 for the four methods and for the inline form, on both bindings and in 0.3."""
    card = httpx.get(f"{off.http.base_url}/.well-known/agent-card.json", timeout=PATIENCE).json()
    assert card["capabilities"]["pushNotifications"] is False
    config = {"taskId": "t", "url": "https://example.com/hook", "id": "c1"}
    assert off.error("CreateTaskPushNotificationConfig", config) == -32003
    assert off.error("GetTaskPushNotificationConfig", {"taskId": "t", "id": "c1"}) == -32003
    assert off.error("ListTaskPushNotificationConfigs", {"taskId": "t"}) == -32003
    assert off.error("DeleteTaskPushNotificationConfig", {"taskId": "t", "id": "c1"}) == -32003
    inline = {"message": message(), "configuration": {"taskPushNotificationConfig": {"url": "https://example.com"}}}
    assert off.error("SendMessage", inline) == -32003
    assert off.error("SendStreamingMessage", inline) == -32003
    base = "/a2a/v1/tasks/t/pushNotificationConfigs"
    answers = [
        off.http.post(base, json=config),
        off.http.get(base),
        off.http.get(f"{base}/c1"),
        off.http.delete(f"{base}/c1"),
    ]
    assert [answer.status_code for answer in answers] == [400] * 4
    reasons = {answer.json()["error"]["details"][0]["reason"] for answer in answers}
    assert reasons == {"PUSH_NOTIFICATION_NOT_SUPPORTED"}
    old = {"taskId": "t", "pushNotificationConfig": {"url": "https://example.com"}}
    assert off.rpc("tasks/pushNotificationConfig/set", old)["error"]["code"] == -32003
    assert off.result("ListTasks")["totalSize"] == 0

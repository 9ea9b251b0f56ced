"""The owner's screens of webhooks."""

import pytest
from django.test import Client
from django.urls import reverse

from a2a_server.models import PushConfig, PushDelivery
from tests.admin.conftest import Rows
from trust.models import Caller


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The configs for which a message was sent. Nothing is really sent."""
    configs: list[int] = []
    monkeypatch.setattr("a2a_server.push.configs.publish", lambda _task, config: configs.append(config))
    return configs


def test_deliveries_are_shown_and_secrets_are_not(as_owner: Client, rows: Rows) -> None:
    PushDelivery.objects.create(config=rows.push_config, seq=1, retries=3, last_error="answered 503")
    for page in (
        reverse("admin:a2a_server_pushconfig_changelist"),
        reverse("admin:a2a_server_pushconfig_change", args=[rows.push_config.pk]),
    ):
        text = as_owner.get(page).content.decode()
        assert "olivias-hook" in text
        assert "olivias-token" not in text
    assert "answered 503" in text


def test_deliver_now_and_stop(
    as_owner: Client, rows: Rows, sent: list[int], django_capture_on_commit_callbacks: object
) -> None:
    delivery = PushDelivery.objects.create(config=rows.push_config, seq=1, retries=7, next_try_at="2100-01-01T00:00Z")
    PushConfig.objects.update(state="failing")
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        as_owner.post(reverse("admin:a2a_server_pushconfig_deliver_now", args=[rows.push_config.pk]))
    delivery.refresh_from_db()
    rows.push_config.refresh_from_db()
    assert (delivery.retries, delivery.next_try_at.year < 2100, rows.push_config.state) == (0, True, "active")
    assert sent == [rows.push_config.pk]
    as_owner.post(reverse("admin:a2a_server_pushconfig_stop", args=[rows.push_config.pk]))
    rows.push_config.refresh_from_db()
    assert rows.push_config.state == "stopped"


def test_anothers_webhook_is_none(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    for name in ("deliver_now", "stop"):
        url = reverse(f"admin:a2a_server_pushconfig_{name}", args=[other_rows.push_config.pk])
        assert as_owner.post(url).status_code == 404
        assert as_owner.get(url).status_code == 405
    other_rows.push_config.refresh_from_db()
    assert other_rows.push_config.state == "active"


def test_the_webhook_secret_is_shown_once(as_owner: Client, rows: Rows) -> None:
    answer = as_owner.post(reverse("admin:trust_caller_webhook_secret", args=[rows.caller.pk]))
    secret = Caller.objects.get(pk=rows.caller.pk).webhook_secret
    assert secret is not None
    assert secret in answer.content.decode()
    page = reverse("admin:trust_caller_change", args=[rows.caller.pk])
    assert secret not in as_owner.get(page).content.decode()
    assert "are signed" in as_owner.get(page).content.decode()

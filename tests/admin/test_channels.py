"""The owner's channels in the admin: secrets go in and never come out, and a test is really sent."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from tests.admin.conftest import Rows, admin_url
from tests.receiver import Receiver
from tests.volcanic.channel_servers import closed_port
from volcanic.admin import workspaces
from volcanic.models import NotificationDelivery, Workspace
from volcanic.notifications.workspace_channels import workspace_set_channels

SECRET = "json://olivia:secret-word@192.0.2.1/SECRET-PATH?+X-Token=secret-word"


def _form(**given: str) -> dict[str, str]:
    return {"card_name": "olivias card", "card_description": "", "notify_owner": "on", **given}


def _page(client: Client, rows: Rows) -> str:
    return client.get(admin_url(Workspace, "change", rows.workspace.pk)).content.decode()


def test_channels_go_in_and_are_shown_masked(as_owner: Client, rows: Rows) -> None:
    url = admin_url(Workspace, "change", rows.workspace.pk)
    assert "notifications wait here only" in _page(as_owner, rows)
    assert as_owner.post(url, _form(new_channels=f"{SECRET}\nntfy://topic")).status_code == 302
    rows.workspace.refresh_from_db()
    assert rows.workspace.notify_urls == f"{SECRET}\nntfy://topic"
    pages = [_page(as_owner, rows), as_owner.get(admin_url(Workspace, "history", rows.workspace.pk)).content.decode()]
    assert "JSON (json://192.0.2.1), ntfy (ntfys://topic)" in pages[0]
    for shown in (*pages, str(list(LogEntry.objects.values_list("change_message", flat=True)))):
        assert "secret-word" not in shown
        assert "SECRET-PATH" not in shown
    # An empty field leaves them as they are.
    as_owner.post(url, _form(card_name="other"))
    rows.workspace.refresh_from_db()
    assert rows.workspace.notify_urls is not None
    as_owner.post(url, _form(remove_channels="on"))
    rows.workspace.refresh_from_db()
    assert rows.workspace.notify_urls is None


def test_a_wrong_address_changes_nothing(as_owner: Client, rows: Rows) -> None:
    workspace_set_channels(workspace=rows.workspace, text=SECRET)
    url = admin_url(Workspace, "change", rows.workspace.pk)
    for wrong, problem in (
        ("syslog://", "this channel shows notifications on the server itself"),
        ("discord://[::1]/abcdefghijklmnopqrstuvwx", "this address has an invalid part"),
    ):
        answer = as_owner.post(url, _form(new_channels=f"ntfy://topic\n{wrong}"))
        assert answer.status_code == 200
        assert f"Line 2: {problem}" in answer.content.decode()
    rows.workspace.refresh_from_db()
    assert rows.workspace.notify_urls == SECRET


def test_a_superuser_makes_a_workspace_with_channels(as_superuser: Client, rows: Rows) -> None:
    form = _form(slug="third", owner=str(rows.workspace.owner_id), new_channels="ntfy://topic")
    assert as_superuser.post(admin_url(Workspace, "add"), form).status_code == 302
    assert Workspace.objects.get(slug="third").notify_urls == "ntfy://topic"


def test_a_test_is_sent_to_each(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    button = reverse("admin:volcanic_workspace_send_test", args=[rows.workspace.pk])
    assert "Send a test" not in _page(as_owner, rows)
    with Receiver() as receiver, closed_port() as port:
        up = receiver.url.replace("http", "json", 1)
        workspace_set_channels(workspace=rows.workspace, text=f"{up}/SECRET-PATH\njson://127.0.0.1:{port}/SECRET-PATH")
        assert "Send a test" in _page(as_owner, rows)
        text = as_owner.post(button, follow=True).content.decode()
    assert [request.json["title"] for request in receiver.received] == ["olivias card"]
    assert f"JSON ({up}): delivered." in text
    assert f"JSON (json://127.0.0.1:{port}): A Connection error occurred" in text
    assert "SECRET-PATH" not in text
    assert as_owner.get(button).status_code == 405
    other = reverse("admin:volcanic_workspace_send_test", args=[other_rows.workspace.pk])
    assert as_owner.post(other).status_code == 404


def test_deliveries_are_shown_without_addresses_and_tried_again(
    as_owner: Client,
    rows: Rows,
    other_rows: Rows,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr("volcanic.leased_work.publish", lambda *message: sent.append(message))
    NotificationDelivery.objects.update(state="failed", retries=27, last_error="answered 503")
    for page in (
        admin_url(NotificationDelivery, "changelist"),
        admin_url(NotificationDelivery, "change", rows.delivery.pk),
    ):
        text = as_owner.get(page).content.decode()
        assert "olivias channel" in text
        assert "answered 503" in text
        assert "SECRET-PATH" not in text
    chosen = {"action": "try_again", "_selected_action": [rows.delivery.pk, other_rows.delivery.pk]}
    with django_capture_on_commit_callbacks(execute=True):
        as_owner.post(admin_url(NotificationDelivery, "changelist"), chosen)
    rows.delivery.refresh_from_db()
    other_rows.delivery.refresh_from_db()
    assert (rows.delivery.state, rows.delivery.retries) == ("pending", 0)
    assert sent == [("volcanic.tasks.deliver", rows.workspace.pk, "olivias channel")]
    assert other_rows.delivery.state == "failed"
    # Now it is pending, and may be on its way: it is left alone.
    with django_capture_on_commit_callbacks(execute=True):
        answer = as_owner.post(admin_url(NotificationDelivery, "changelist"), chosen, follow=True)
    assert "Left unchanged: 1. Only failed deliveries can be tried again" in answer.content.decode()
    assert len(sent) == 1


def test_one_test_at_a_time(as_owner: Client, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    async def send(url: str, title: str, text: str, *, seconds: float) -> str:
        sent.append(url)
        return ""

    monkeypatch.setattr(workspaces, "channel_send_apart", send)
    workspace_set_channels(workspace=rows.workspace, text=SECRET)
    button = reverse("admin:volcanic_workspace_send_test", args=[rows.workspace.pk])
    with workspaces._testing:
        assert "Another test is running" in as_owner.post(button, follow=True).content.decode()
    assert sent == []
    assert "delivered." in as_owner.post(button, follow=True).content.decode()
    assert sent == [SECRET]

"""The owner's channels: which addresses are taken, how they are shown, and texts that are really sent."""

import logging

import pytest
from django.core.exceptions import ValidationError

from tests.receiver import Receiver
from tests.volcanic.channel_servers import MailServer, closed_port
from volcanic.models import Workspace
from volcanic.notifications.apprise_urls import channel_lines, channel_send, channel_shown, channels_check
from volcanic.notifications.workspace_channels import workspace_set_channels

# Its first part would be shown as a host, which Python refuses to take for one.
ODD = "discord://[::1]/abcdefghijklmnopqrstuvwx"
TOKEN = "ABCdefghijkl_mnopqrstuvwxyz-1234567"


def _http(receiver: Receiver, path: str = "/hooks/SECRET-PATH", **options: str) -> str:
    query = "".join(f"&{name}={value}" for name, value in options.items())
    return f"{receiver.url.replace('http', 'json', 1)}{path}?method=post{query}"


def test_lines() -> None:
    assert channel_lines(None) == []
    assert channel_lines(" a://b \n\n# a note\r\nc://d") == ["a://b", "c://d"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"tgram://123456789:{TOKEN}/12345/", "Telegram (tgram://1...7)"),
        ("json://olivia:secret-word@192.0.2.1:81/SECRET-PATH?+X-Token=secret-word", "JSON (json://192.0.2.1:81)"),
        ("mailtos://olivia:secret-word@mail.example.com", "E-Mail (mailtos://mail.example.com)"),
        ("ntfys://tk_secret-word@ntfy.example.com/topic", "ntfy (ntfys://ntfy.example.com)"),
        (f"slack://T1JJ3T3L2/A1BRTD4JD/{TOKEN[:24].replace('_', 'x')}/#general", "Slack (slack://T...2)"),
        (f"https://discord.com/api/webhooks/4174216298/{TOKEN}", "Discord (discord://4...8)"),
        ("what-was-an-address://once", "A channel that is no longer known"),
        ("json://[::1]:8080/SECRET-PATH", "JSON (json://[::1]:8080)"),
        (ODD, "Discord"),
    ],
)
def test_channels_are_shown_without_secrets(url: str, shown: str) -> None:
    assert channel_shown(url) == shown


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("secret-word", "Apprise does not know this kind of address"),
        ("secret-word://x", "Apprise does not know this kind of address"),
        ("slack://secret-word", "incomplete, or needs software"),
        ("xmpp://olivia:secret-word@192.0.2.1", "incomplete, or needs software"),
        ("syslog://", "on the server itself"),
        ("dbus://", "on the server itself"),
        ("gnome://", "on the server itself"),
        ("windows://", "on the server itself"),
        ("macosx://", "on the server itself"),
        (f"discord://4174216298/{TOKEN}?template=/etc/passwd", "names a file"),
        ("fcm://project/device?keyfile=/etc/passwd", "names a file"),
        (ODD, "this address has an invalid part"),
    ],
)
def test_what_can_not_be_a_channel(url: str, problem: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValidationError, match=f"Line 3: .*{problem}") as raised:
        channels_check(f"json://192.0.2.1\n\n{url}")
    assert not {"secret-word", TOKEN, "passwd"} & {word for word in str(raised.value).split("/")}
    assert "secret" not in str(raised.value)
    assert "Line 1" not in str(raised.value)
    assert TOKEN not in caplog.text


def test_not_too_many() -> None:
    assert len(channels_check("json://192.0.2.1\n" * 10)) == 10
    with pytest.raises(ValidationError, match="10 channels at most"):
        channels_check("json://192.0.2.1\n" * 11)


@pytest.mark.django_db
def test_channels_of_a_workspace(workspace: Workspace) -> None:
    assert workspace_set_channels(workspace=workspace, text="# home\njson://192.0.2.1\n\nxml://192.0.2.2") == 2
    workspace.refresh_from_db()
    assert workspace.notify_urls == "json://192.0.2.1\nxml://192.0.2.2"
    with pytest.raises(ValidationError):
        workspace_set_channels(workspace=workspace, text="syslog://")
    assert workspace_set_channels(workspace=workspace, text="") == 0
    workspace.refresh_from_db()
    assert workspace.notify_urls is None


def test_mail_is_sent() -> None:
    with MailServer() as mail:
        for url in (mail.url, f"{mail.url}&format=html"):
            assert channel_send(url, "Volcanic assistant", "1. a <b>caller</b>: *hi*\n2. more & more") == ""
    text, html = mail.received
    assert (text["Subject"], "olivia@example.com" in text["To"]) == ("Volcanic assistant", True)
    assert text.get_content().splitlines() == ["1. a <b>caller</b>: *hi*", "2. more & more"]
    # A caller's words stay text.
    body = html.get_body(("html",))
    assert body is not None
    assert "&lt;b&gt;caller&lt;/b&gt;" in body.get_content()


def test_http_is_sent() -> None:
    with Receiver() as receiver:
        assert channel_send(_http(receiver), "title", "text") == ""
    (request,) = receiver.received
    assert request.path.startswith("/hooks/SECRET-PATH")
    assert (request.json["title"], request.json["message"]) == ("title", "text")


def test_a_failure_tells_nothing_of_the_address(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with Receiver(lambda _request, _number: 503) as receiver:
        error = channel_send(_http(receiver, path="/notification/SECRET-PATH"), "t", "x")
    assert error.startswith("Failed to send JSON POST …: ")
    assert error.endswith("error=503.")
    with closed_port() as closed:
        for url in (
            f"json://o:secret-word@127.0.0.1:{closed}/SECRET-PATH",
            f"mailto://127.0.0.1:{closed}?from=a@b.example",
        ):
            error = channel_send(url, "t", "x")
            assert "onnection error" in error
            assert "SECRET-PATH" not in error + caplog.text
            assert "secret-word" not in error + caplog.text
    for url in ("syslog://", ODD, ""):
        assert "can be used" in channel_send(url, "t", "x")


def test_a_plugin_that_breaks_is_shown_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    # Apprise asks for it too, for its log, and leaves out a plugin that breaks there.
    once = iter(["json://192.0.2.1"])
    monkeypatch.setattr("apprise.plugins.custom_json.NotifyJSON.url", lambda *_, **__: next(once))
    assert channel_shown("json://192.0.2.1") == "JSON"

"""Redaction: secrets are removed from texts and log events."""

import pytest

from volcanic.redaction import MASK, redact, redact_event


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abc.def-123", "abc.def-123"),
        ("authorization: basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("X-API-Key: hunter2hunter2", "hunter2hunter2"),
        ("{'x-api-key': 'hunter2hunter2'}", "hunter2hunter2"),
        ('{"api_key": "hunter2hunter2"}', "hunter2hunter2"),
        ("password=hunter2", "hunter2"),
        ("postgres://volcanic:hunter2@db/volcanic", "hunter2"),
        ("Incorrect API key provided: sk-proj-abcdef123456.", "sk-proj-abcdef123456"),
        ("the key vk_0123456789abcdef is not known", "vk_0123456789abcdef"),
    ],
)
def test_redact_takes_secrets_out(text: str, secret: str) -> None:
    redacted = redact(text)
    assert secret not in redacted
    assert MASK in redacted


@pytest.mark.parametrize(
    "text", ["", "nothing to hide", "the bearer of news", "https://example.com/a:b@c", "a risk-free sk- offer"]
)
def test_redact_leaves_the_rest(text: str) -> None:
    assert redact(text) == text


def test_redact_keeps_what_names_the_secret() -> None:
    assert redact("password=hunter2, user=bob") == f"password={MASK}, user=bob"


def test_redact_event_reaches_into_tracebacks() -> None:
    event = {"event": "Bearer abcdefgh", "count": 3, "exception": [{"exc_value": "password=hunter2"}]}
    assert redact_event(None, "info", event) == {
        "event": f"Bearer {MASK}",
        "count": 3,
        "exception": [{"exc_value": f"password={MASK}"}],
    }

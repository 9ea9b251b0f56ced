"""The system checks: each finds its mistake, and nothing else."""

import pytest
from django.core.checks import INFO, run_checks
from pytest_django.fixtures import Settings


def _ids(**_kwargs: object) -> list[str | None]:
    # What is only information depends on the machine: whether it has a sandbox.
    return [
        message.id
        for message in run_checks(include_deployment_checks=True)
        if (message.id or "")[:8] == "volcanic" and message.level > INFO
    ]


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("PUBLIC_URL", "https://assistant.example.com", []),
        ("RUNNER", "volcanic.runtime.nothing.Runner", ["volcanic.E001"]),
        ("RUNNER", "nopackage.Runner", ["volcanic.E001"]),
        ("RUNNER", "Runner", ["volcanic.E001"]),
        ("PUBLIC_URL", "assistant.example.com", ["volcanic.E002", "volcanic.W001"]),
        ("PUBLIC_URL", "https://assistant.example.com/a2a", ["volcanic.E002"]),
        ("PUBLIC_URL", "http://assistant.example.com", ["volcanic.W001"]),
        ("ALLOW_PRIVATE_URLS", True, ["volcanic.W002"]),
        ("ALLOWED_PRIVATE_HOSTS", ["peer.internal:8443"], []),
        ("OWNER_BASH", "unsafe", ["volcanic.W003"]),
        ("MODEL", "gpt", ["volcanic.E003"]),
        ("MODEL", "nope:x", ["volcanic.W004"]),
        ("MODEL", "openai-chat:x", []),
        ("FIELD_KEYS", ["short"], ["volcanic.E004"]),
        ("FIELD_KEYS", [], ["volcanic.E004"]),
    ],
)
def test_checks(settings: Settings, name: str, value: object, found: list[str]) -> None:
    settings.PUBLIC_URL = "https://assistant.example.com"
    setattr(settings, name, value)
    assert _ids() == found

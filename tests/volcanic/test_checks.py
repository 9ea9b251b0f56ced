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
        ("MODEL", "openai-chat:x", ["volcanic.W005"]),
        ("MODEL", "anthropic:x", ["volcanic.W005"]),
        ("FIELD_KEYS", ["short"], ["volcanic.E004"]),
        ("FIELD_KEYS", [], ["volcanic.E004"]),
    ],
)
def test_checks(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str, value: object, found: list[str]
) -> None:
    _environment(monkeypatch)
    settings.PUBLIC_URL = "https://assistant.example.com"
    setattr(settings, name, value)
    assert _ids() == found


def _environment(monkeypatch: pytest.MonkeyPatch, **given: str) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("model", "given", "found"),
    [
        ("anthropic:x", {"ANTHROPIC_API_KEY": "key"}, []),
        ("anthropic:x", {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "key"}, ["volcanic.W005"]),
        ("openai:x", {"OPENAI_API_KEY": "key"}, []),
        ("openai-chat:x", {"OPENAI_BASE_URL": "http://localhost:11434/v1"}, []),  # a server of one's own
        # As docker-compose.yml gives them to whoever sets none.
        ("openai-chat:x", {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "https://api.openai.com/v1"}, ["volcanic.W005"]),
    ],
)
def test_a_models_key(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, model: str, given: dict[str, str], found: list[str]
) -> None:
    _environment(monkeypatch, **given)
    settings.PUBLIC_URL = "https://assistant.example.com"
    settings.MODEL = model
    assert _ids() == found

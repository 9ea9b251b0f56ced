"""System checks: misconfiguration is found at start, with an id and a hint."""

import os
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register


@register()
def runner_exists(**_kwargs: Any) -> list[CheckMessage]:
    """volcanic.E001: RUNNER names a module that can be imported.

    Only the worker imports the class. To import the class here would load the model libraries, which would cost every
    command seconds.
    """
    module, _, name = settings.RUNNER.rpartition(".")
    try:
        found = bool(module and name and find_spec(module))
    except ModuleNotFoundError:
        found = False
    if found:
        return []
    return [
        Error(
            f"RUNNER names no module: {settings.RUNNER!r}.",
            hint="Use a dotted path to a Runner class, volcanic.runtime.echo.EchoRunner for example.",
            id="volcanic.E001",
        )
    ]


@register()
def public_url_is_absolute(**_kwargs: Any) -> list[CheckMessage]:
    """volcanic.E002: PUBLIC_URL is an absolute http(s) URL without a path, since it goes into the agent card."""
    url = urlsplit(settings.PUBLIC_URL)
    if url.scheme in {"http", "https"} and url.netloc and not url.path.strip("/") and not url.query:
        return []
    return [
        Error(
            f"PUBLIC_URL is not the root of a site: {settings.PUBLIC_URL!r}.",
            hint="Use for example https://assistant.example.com",
            id="volcanic.E002",
        )
    ]


@register(deploy=True)
def public_url_is_https(**_kwargs: Any) -> list[CheckMessage]:
    """volcanic.W001: in production other agents reach the assistant over TLS."""
    if urlsplit(settings.PUBLIC_URL).scheme == "https":
        return []
    return [
        Warning(
            "PUBLIC_URL is not https: callers' keys would cross the network in the clear.",
            hint="Put a TLS proxy in front and set PUBLIC_URL to the proxy's address.",
            id="volcanic.W001",
        )
    ]


@register(deploy=True)
def private_urls_are_closed(**_kwargs: Any) -> list[CheckMessage]:
    """volcanic.W002: in production other agents can't aim requests at the machines around this one."""
    if not settings.ALLOW_PRIVATE_URLS:
        return []
    return [
        Warning(
            "ALLOW_PRIVATE_URLS is on: other agents can make the server call machines in the server's own network.",
            hint="List the intended hosts in ALLOWED_PRIVATE_HOSTS instead.",
            id="volcanic.W002",
        )
    ]


@register()
def model_is_named(**_kwargs: Any) -> list[CheckMessage]:
    """volcanic.E003: MODEL is `faux` or `provider:name`."""
    if settings.MODEL == "faux" or settings.MODEL.partition(":")[2]:
        return []
    return [
        Error(
            f"MODEL names no model: {settings.MODEL!r}.",
            hint="Use faux, openai:NAME, anthropic:NAME, or openai-chat:NAME with OPENAI_BASE_URL.",
            id="volcanic.E003",
        )
    ]


# Providers whose libraries the requirements install.
PROVIDERS = frozenset({"openai", "openai-chat", "openai-responses", "anthropic"})


@register()
def model_provider_is_known(**_kwargs: Any) -> list[CheckMessage]:
    """volcanic.W004: MODEL's provider is one of PROVIDERS, whose libraries are installed.

    pydantic-ai knows more providers. To import pydantic-ai here would cost every command seconds.
    """
    provider, _, name = settings.MODEL.partition(":")
    if not name or provider in PROVIDERS:
        return []
    return [
        Warning(
            f"MODEL names the provider {provider!r}, whose library may be missing. Every turn would then fail.",
            hint=f"Use one of {', '.join(sorted(PROVIDERS))}, or install the provider's library for pydantic-ai.",
            id="volcanic.W004",
        )
    ]


# Environment variables in which the providers' libraries look for a key. A self-hosted server may need no key.
_KEYS = {"anthropic": "ANTHROPIC_API_KEY"} | dict.fromkeys(PROVIDERS - {"anthropic"}, "OPENAI_API_KEY")
_OPENAI = "https://api.openai.com/v1"


@register()
def model_has_a_key(**_kwargs: Any) -> list[CheckMessage]:
    """volcanic.W005: the key of MODEL's provider is in the environment."""
    provider, _, name = settings.MODEL.partition(":")
    key = _KEYS.get(provider, "") if name else ""
    own_server = key == "OPENAI_API_KEY" and os.environ.get("OPENAI_BASE_URL", "").rstrip("/") not in ("", _OPENAI)
    if not key or own_server or os.environ.get(key):
        return []
    return [
        Warning(
            f"MODEL is {settings.MODEL!r}, but {key} is not set: every turn will fail.",
            hint=f"Put the provider's key into the environment: {key}=… (in the file .env, if you use one).",
            id="volcanic.W005",
        )
    ]


@register()
def field_keys_are_long(**_kwargs: Any) -> list[CheckMessage]:
    """volcanic.E004: FIELD_KEYS holds a key, and each key has at least 32 characters, so that none can be guessed."""
    if settings.FIELD_KEYS and all(len(key) >= 32 for key in settings.FIELD_KEYS):
        return []
    return [
        Error(
            "FIELD_KEYS is empty or holds a key with fewer than 32 characters.",
            hint="Generate a key with: openssl rand -hex 32",
            id="volcanic.E004",
        )
    ]

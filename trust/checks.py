"""System checks of the settings IDENTITY_VERIFIERS and SKILL_HANDLERS."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from trust import handlers


@register()
def verifiers_can_be_made(**_kwargs: Any) -> list[CheckMessage]:
    """trust.E001: every verifier of IDENTITY_VERIFIERS can be imported, is configured, and is allowed here."""
    errors: list[CheckMessage] = []
    if not settings.IDENTITY_VERIFIERS:
        errors.append(Error("IDENTITY_VERIFIERS is empty: nobody could call.", id="trust.E001"))
    for path in settings.IDENTITY_VERIFIERS:
        try:
            import_string(path)()
        except (ImportError, TypeError, ImproperlyConfigured) as error:
            errors.append(
                Error(
                    f"IDENTITY_VERIFIERS: {path} can't be used: {error}",
                    hint="See docs/verifiers.md.",
                    id="trust.E001",
                )
            )
    return errors


@register()
def handlers_can_be_called(**_kwargs: Any) -> list[CheckMessage]:
    """trust.E002: every handler of SKILL_HANDLERS can be imported and is an async function of a turn and a sink."""
    errors: list[CheckMessage] = []
    for path in settings.SKILL_HANDLERS:
        try:
            handlers.handler(path)
        except ImproperlyConfigured as error:
            errors.append(Error(f"SKILL_HANDLERS: {error}", hint="See docs/skills.md.", id="trust.E002"))
    return errors

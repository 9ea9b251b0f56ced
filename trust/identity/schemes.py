"""Security schemes for the agent card, collected from the verifiers in IDENTITY_VERIFIERS."""

from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string


def security_schemes() -> dict[str, dict[str, Any]]:
    """Returns A2A's security schemes in JSON, by name. Each one alone lets a caller in.

    They come from the verifiers' static method `schemes`. A verifier without this method is not on the card, but it is
    still asked.
    """
    schemes: dict[str, dict[str, Any]] = {}
    for path in settings.IDENTITY_VERIFIERS:
        tell = getattr(import_string(path), "schemes", None)
        schemes |= tell() if tell is not None else {}
    return schemes

"""What the agent card says of how to prove who one is: what each verifier of IDENTITY_VERIFIERS says of itself."""

from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string


def security_schemes() -> dict[str, dict[str, Any]]:
    """Returns the schemes by name, as A2A's security schemes in JSON. Each alone lets a caller in.

    A verifier tells them in a static method `schemes`. One that has none is not on the card, and still asked.
    """
    schemes: dict[str, dict[str, Any]] = {}
    for path in settings.IDENTITY_VERIFIERS:
        tell = getattr(import_string(path), "schemes", None)
        schemes |= tell() if tell is not None else {}
    return schemes

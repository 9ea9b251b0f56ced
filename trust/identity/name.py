"""A prototype for development: believes whatever name a caller gives itself."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from trust.identity.base import Envelope, VerifiedIdentity

ISSUER = "name"
HEADER = "x-agent-name"


class NameVerifier:
    """Takes the header X-Agent-Name at its word. Can't be made in production."""

    def __init__(self) -> None:
        if not settings.SELF_ASSERTED_ALLOWED:
            raise ImproperlyConfigured("NameVerifier lets in whoever gives a name: it works in development only.")

    async def verify(self, envelope: Envelope) -> VerifiedIdentity | None:
        """Returns the name that the caller gives itself."""
        name = envelope.one(HEADER)
        return VerifiedIdentity(name, name, ISSUER, self_asserted=True) if name else None

    @staticmethod
    def schemes() -> dict[str, dict[str, Any]]:
        """Returns what the agent card says of names."""
        described = {"description": "A name of your own, at its word.", "location": "header", "name": "X-Agent-Name"}
        return {"name": {"apiKeySecurityScheme": described}}

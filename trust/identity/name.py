"""Self-asserted names: a verifier for development that accepts any name a caller gives itself."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from trust.identity.base import Envelope, VerifiedIdentity

ISSUER = "name"
HEADER = "x-agent-name"


class NameVerifier:
    """Accepts the header X-Agent-Name without proof. Raises ImproperlyConfigured in production."""

    def __init__(self) -> None:
        if not settings.SELF_ASSERTED_ALLOWED:
            raise ImproperlyConfigured("NameVerifier accepts any name without proof: it works in development only.")

    async def verify(self, envelope: Envelope) -> VerifiedIdentity | None:
        """Returns the name that the caller gives itself, or None if it gives no name."""
        name = envelope.one(HEADER)
        return VerifiedIdentity(name, name, ISSUER, self_asserted=True) if name else None

    @staticmethod
    def schemes() -> dict[str, dict[str, Any]]:
        """Returns the security scheme of names for the agent card."""
        described = {"description": "Your name, without proof.", "location": "header", "name": "X-Agent-Name"}
        return {"name": {"apiKeySecurityScheme": described}}

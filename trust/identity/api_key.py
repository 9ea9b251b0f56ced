"""API keys: the verifier of our own keys, in the header X-API-Key or as a bearer token."""

from typing import Any

from trust.identity.base import Envelope, IdentityRefused, VerifiedIdentity, looks_like_jwt
from trust.keys import key_digest
from trust.selectors import caller_by_key_digest
from volcanic.aio.db import run_db

ISSUER = "api-key"


class ApiKeyVerifier:
    """Finds the caller of a key with one SQL statement."""

    async def verify(self, envelope: Envelope) -> VerifiedIdentity | None:
        """Returns the identity of the key's caller, or None if the request has no key of ours.

        Raises IdentityRefused for a wrong X-API-Key or several of them. A bearer token that is not a key returns None.
        """
        keys = envelope.values("x-api-key")
        if len(keys) > 1:
            raise IdentityRefused("several-keys")
        own = keys[0] if keys else ""
        key = own or envelope.bearer
        if not key or (not own and looks_like_jwt(key)):
            return None
        caller = await run_db(caller_by_key_digest, key_digest(key))
        if caller is not None:
            return VerifiedIdentity(str(caller.id), caller.name, ISSUER, caller=caller)
        if own:
            raise IdentityRefused("wrong-key")
        return None

    @staticmethod
    def schemes() -> dict[str, dict[str, Any]]:
        """Returns the security schemes of keys for the agent card: one of both headers is enough."""
        return {
            "apiKey": {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}},
            "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
        }

"""Who is calling: the ways to tell, and whom to let in."""

from typing import Any

from volcanic.settings.env import PRODUCTION, env

# Whether callers may be let in by a name they give themselves.
SELF_ASSERTED_ALLOWED: bool = not PRODUCTION
# Asked in this order.
IDENTITY_VERIFIERS: list[str] = env.list("IDENTITY_VERIFIERS", ["trust.identity.api_key.ApiKeyVerifier"])
# Issuers whose agents become callers at Observe with their first call.
ADMIT_UNKNOWN: list[str] = env.list("ADMIT_UNKNOWN", [])
# A JSON list; trust.identity.jwt reads it.
JWT_ISSUERS: Any = env.json("JWT_ISSUERS", [])

"""Who is calling: the ways to tell, and whom to let in."""

from typing import Any

from volcanic.settings.env import PRODUCTION, at_least, env

# Whether callers may be let in by a name they give themselves.
SELF_ASSERTED_ALLOWED: bool = not PRODUCTION
# Asked in this order.
IDENTITY_VERIFIERS: list[str] = env.list("IDENTITY_VERIFIERS", ["trust.identity.api_key.ApiKeyVerifier"])
# Issuers whose agents become callers at Observe with their first call.
ADMIT_UNKNOWN: list[str] = env.list("ADMIT_UNKNOWN", [])
# So many identities of one issuer there may be for another to be admitted. 0: any number.
MAX_ADMITTED_CALLERS: int = env.int("MAX_ADMITTED_CALLERS", 1000, validate=at_least(0))
# A JSON list; trust.identity.jwt reads it.
JWT_ISSUERS: Any = env.json("JWT_ISSUERS", [])

"""Settings of authentication: verifiers of callers' credentials, and admission of unknown callers."""

from typing import Any

from volcanic.settings.env import PRODUCTION, at_least, env

# Accepts callers by a self-asserted name, outside of production only.
SELF_ASSERTED_ALLOWED: bool = not PRODUCTION
# Verifiers of credentials, asked in this order.
IDENTITY_VERIFIERS: list[str] = env.list("IDENTITY_VERIFIERS", ["trust.identity.api_key.ApiKeyVerifier"])
# Issuers whose agents become callers at Observe with their first call.
ADMIT_UNKNOWN: list[str] = env.list("ADMIT_UNKNOWN", [])
# An unknown agent is admitted only while its issuer has fewer identities than this. 0 means no limit.
MAX_ADMITTED_CALLERS: int = env.int("MAX_ADMITTED_CALLERS", 1000, validate=at_least(0))
# A JSON list of issuers, parsed by trust.identity.jwt.
JWT_ISSUERS: Any = env.json("JWT_ISSUERS", [])

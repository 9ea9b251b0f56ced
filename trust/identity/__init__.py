"""Authentication: verifiers read a request's envelope, and the identity that they verify becomes one of our callers.

`settings.IDENTITY_VERIFIERS` names the verifiers. docs/verifiers.md says how to write one.
"""

from trust.identity.base import Envelope, IdentityRefused, IdentityVerifier, TLSFacts, VerifiedIdentity

__all__ = ["Envelope", "IdentityRefused", "IdentityVerifier", "TLSFacts", "VerifiedIdentity"]

"""The resolver of callers: asks the verifiers in order, then finds the caller of the verified identity."""

from collections.abc import Sequence

from django.conf import settings
from django.utils.module_loading import import_string

from trust.identity.admission import caller_of
from trust.identity.base import Envelope, IdentityRefused, IdentityVerifier, VerifiedIdentity
from trust.selectors import AuthenticatedCaller
from volcanic.aio.db import run_db


def verifiers_from_settings() -> list[IdentityVerifier]:
    """Returns the verifiers in IDENTITY_VERIFIERS. Raises ImportError or ImproperlyConfigured if one can't be made."""
    return [import_string(path)() for path in settings.IDENTITY_VERIFIERS]


class Resolver:
    """Finds the caller of a request. Made once for each web process."""

    def __init__(self, verifiers: Sequence[IdentityVerifier] | None = None) -> None:
        self._verifiers = verifiers_from_settings() if verifiers is None else list(verifiers)

    async def resolve(self, envelope: Envelope) -> AuthenticatedCaller:
        """Returns the caller. Raises IdentityRefused if a verifier refuses the request or if no verifier knows it."""
        for verifier in self._verifiers:
            identity = await verifier.verify(envelope)
            if identity is not None:
                return await run_db(caller_of, identity) if identity.caller is None else identity.caller
        offered = any(envelope.values(name) for name in ("x-api-key", "authorization"))
        raise IdentityRefused("unknown-credential" if offered else "no-credential")

    def vouched(self, envelope: Envelope) -> VerifiedIdentity | None:
        """Returns the identity if a verifier can tell it without the database or another server, else None."""
        for verifier in self._verifiers:
            tell = getattr(verifier, "vouched", None)
            identity: VerifiedIdentity | None = tell(envelope) if tell is not None else None
            if identity is not None:
                return identity
        return None

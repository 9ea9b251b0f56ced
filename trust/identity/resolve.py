"""From an envelope to one of our callers: the verifiers in order, then the caller that the identity stands for."""

from collections.abc import Sequence

from django.conf import settings
from django.utils.module_loading import import_string

from trust.identity.admission import caller_of
from trust.identity.base import Envelope, IdentityRefused, IdentityVerifier, VerifiedIdentity
from trust.selectors import AuthenticatedCaller
from volcanic.aio.db import run_db


def verifiers_from_settings() -> list[IdentityVerifier]:
    """Makes the verifiers of IDENTITY_VERIFIERS. Raises ImportError or ImproperlyConfigured for a bad one."""
    return [import_string(path)() for path in settings.IDENTITY_VERIFIERS]


class Resolver:
    """Tells which caller a request comes from. Made once for each web process."""

    def __init__(self, verifiers: Sequence[IdentityVerifier] | None = None) -> None:
        self._verifiers = verifiers_from_settings() if verifiers is None else list(verifiers)

    async def resolve(self, envelope: Envelope) -> AuthenticatedCaller:
        """Returns the caller. Raises IdentityRefused: by the first verifier that says no, or when none knows it."""
        for verifier in self._verifiers:
            identity = await verifier.verify(envelope)
            if identity is not None:
                return await run_db(caller_of, identity) if identity.caller is None else identity.caller
        offered = any(envelope.values(name) for name in ("x-api-key", "authorization"))
        raise IdentityRefused("unknown-credential" if offered else "no-credential")

    def vouched(self, envelope: Envelope) -> VerifiedIdentity | None:
        """Returns whom a credential is about, if a verifier can tell without asking the database or anybody else."""
        for verifier in self._verifiers:
            tell = getattr(verifier, "vouched", None)
            identity: VerifiedIdentity | None = tell(envelope) if tell is not None else None
            if identity is not None:
                return identity
        return None

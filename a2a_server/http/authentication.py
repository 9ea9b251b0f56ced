"""Authentication of A2A requests: verifies credentials, slows down guesses, records refused calls."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from starlette.datastructures import Headers

from a2a_server.http import responses
from a2a_server.http.limiting import StrangerLimiter, address_of, peer_of
from a2a_server.http.parsing import FaultError
from trust.identity import Envelope, IdentityRefused
from trust.identity.resolve import Resolver
from trust.keys import key_digest
from trust.refusals import RefusalLog
from trust.selectors import AuthenticatedCaller
from trust.services import key_note_use
from volcanic.aio.db import run_db


class Authenticator:
    """Authenticates callers. Each web process makes one instance.

    A verifier that can't work in the process raises here, which ends the start of the process.
    """

    def __init__(self) -> None:
        self._resolver, self._strangers, self._refusals = Resolver(), StrangerLimiter(), RefusalLog()

    async def authenticate(self, scope: Mapping[str, Any], headers: Headers) -> AuthenticatedCaller:
        """Returns the caller of a request. A session cookie is no credential here.

        Raises FaultError: 401 for a missing or wrong credential, 429 for too many wrong credentials, 503 when the
        credential can't be verified just now.
        """
        envelope = envelope_of(scope, headers)
        source = address_of(scope.get("client"), headers)
        credential = "".join(envelope.values("x-api-key")) or envelope.bearer
        digest = key_digest(credential) if credential else ""
        counted_by = self._counted_by(source, digest, envelope)
        if digest and (wait := self._strangers.wait(counted_by, digest)):
            self._note(source, "too-many-wrong-keys", envelope)
            raise FaultError(responses.rate_limited("Too many wrong keys came from your address.", wait))
        try:
            caller = await self._resolver.resolve(envelope)
        except IdentityRefused as refusal:
            self._note(source, refusal.reason, envelope)
            if refusal.temporary:
                raise FaultError(responses.UNAVAILABLE) from None
            if digest:
                self._strangers.note_bad(counted_by, digest)
            raise FaultError(responses.UNAUTHENTICATED) from None
        if digest:
            self._strangers.note_good(digest)
        if caller.key_id is not None and caller.key_use_is_stale:
            await run_db(key_note_use, key_id=caller.key_id)
        return caller

    def _counted_by(self, source: str, digest: str, envelope: Envelope) -> str:
        """Returns the key under which wrong credentials are counted: the source address, in most cases.

        After too many wrong credentials from the address, an agent with a token of a trusted issuer is counted by
        itself. Its token may be new to this process, and the address alone would shut the agent out.
        """
        if digest and self._strangers.wait(source, digest) and (known := self._resolver.vouched(envelope)):
            return key_digest(f"{known.issuer!r} {known.agent_id!r}")
        return source

    def _note(self, source: str, reason: str, envelope: Envelope) -> None:
        network = ":" in envelope.peer and "." not in envelope.peer
        self._refusals.note(f"{source}::/64" if network else source, reason, envelope.path)


def envelope_of(scope: Mapping[str, Any], headers: Headers) -> Envelope:
    """Returns the part of a request that the verifiers of credentials may see."""
    return Envelope(
        raw_headers=headers.raw,
        peer=peer_of(scope.get("client"), headers),
        method=scope["method"],
        path=scope["path"],
        behind_proxy=settings.AXES_IPWARE_PROXY_COUNT > 0,
    )

"""The interface of verifiers: the envelope that they read, the identity that they return, and the refusal."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from trust.selectors import AuthenticatedCaller

_CODE = re.compile(r"[a-z0-9-]{1,40}")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class IdentityRefused(Exception):
    """The request has no valid credential, or the agent that sent it is not let in.

    `reason` is a short code of a-z, 0-9 and -, of 40 characters at most, for the audit. The caller is not told it.
    Any other text is replaced by `refused`, so that no credential gets into the audit through an exception's text.
    `temporary`: the credential could not be checked, and the same call may succeed later.
    """

    def __init__(self, reason: str, *, temporary: bool = False) -> None:
        self.reason = reason if _CODE.fullmatch(reason) else "refused"
        self.temporary = temporary
        super().__init__(self.reason)


@dataclass(frozen=True, slots=True)
class TLSFacts:
    """The proxy's facts about its TLS connection with the caller. All are empty without a trusted proxy."""

    # X-Forwarded-Proto: https or http.
    scheme: str = ""
    # X-SSL-Client-Verify: SUCCESS where the proxy checked a client certificate.
    client_verified: str = ""
    # X-SSL-Client-S-DN: the certificate's subject.
    client_subject: str = ""
    # X-Forwarded-Client-Cert or X-SSL-Client-Cert: the certificate itself, in the proxy's notation.
    client_certificate: str = ""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A request without its body, which has not been read yet."""

    # The headers in the order of the request, with names in lower case. A name may come several times.
    raw_headers: Sequence[tuple[bytes, bytes]]
    # The caller's address, as the PROXY_COUNT trusted proxies tell it.
    peer: str = ""
    method: str = "POST"
    path: str = "/"
    # True if there is a proxy that the operator trusts (PROXY_COUNT > 0).
    behind_proxy: bool = False

    @classmethod
    def of(cls, headers: Iterable[tuple[str, str]] | Mapping[str, str] = (), **facts: Any) -> "Envelope":
        """Returns an envelope with these headers."""
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        return cls([(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs], **facts)

    def values(self, name: str) -> list[str]:
        """Returns all values of a header, in order, without surrounding blanks."""
        wanted = name.lower().encode("latin-1")
        return [value.decode("latin-1").strip() for given, value in self.raw_headers if given == wanted]

    def one(self, name: str) -> str:
        """Returns the value of a header that came exactly once, else "".

        If a header came twice, a proxy might read one value and we the other, so neither counts.
        """
        values = self.values(name)
        return values[0] if len(values) == 1 else ""

    @property
    def bearer(self) -> str:
        """The token of `Authorization: Bearer`, else ""."""
        scheme, _, token = self.one("authorization").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def tls(self) -> TLSFacts:
        """The trusted proxy's facts about the caller's TLS. Without a trusted proxy any visitor could send them."""
        if not self.behind_proxy:
            return TLSFacts()
        return TLSFacts(
            scheme=self.one("x-forwarded-proto").lower(),
            client_verified=self.one("x-ssl-client-verify"),
            client_subject=self.one("x-ssl-client-s-dn"),
            client_certificate=self.one("x-forwarded-client-cert") or self.one("x-ssl-client-cert"),
        )


@dataclass(frozen=True, slots=True)
class VerifiedIdentity:
    """An agent's identity, as an issuer states it."""

    # Stable: the same agent always has the same id, and no other agent of the issuer ever gets this id.
    agent_id: str
    display_name: str
    issuer: str
    claims: Mapping[str, Any] = field(default_factory=lambda: _NOTHING, repr=False)
    # True if the agent states the identity itself and nobody confirms it.
    self_asserted: bool = False
    # Slug of the workspace to which an unknown agent is admitted; "" if there is only one workspace.
    workspace: str = ""
    # Set by a verifier that has found the caller already. Then nothing is looked up.
    caller: AuthenticatedCaller | None = None


class IdentityVerifier(Protocol):
    """One way to authenticate a caller. Made once for each web process, without arguments.

    A static method `schemes() -> dict[str, dict[str, Any]]` may return the security schemes for the agent card: A2A's
    security schemes in JSON, by name. A method `vouched(envelope) -> VerifiedIdentity | None` may return the identity
    if neither the database nor another server is needed for that. Callers with such an identity are let in even from
    an address that tries wrong keys.
    """

    async def verify(self, envelope: Envelope) -> VerifiedIdentity | None:
        """Returns the identity, or None if the request has no credential for this verifier.

        After None the next verifier is asked. Raises IdentityRefused for a credential that is not valid; then no other
        verifier is asked.
        """
        ...


def looks_like_jwt(token: str) -> bool:
    """Tells whether a token has the form of a signed JWT. Our own keys never have this form."""
    return token.startswith("eyJ") and token.count(".") == 2

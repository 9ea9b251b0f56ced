"""What a verifier is given, what it gives back, and how it says no."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from trust.selectors import AuthenticatedCaller

_CODE = re.compile(r"[a-z0-9-]{1,40}")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class IdentityRefused(Exception):
    """A credential was given and is not good, or its bearer is not let in.

    `reason` is a short code of a-z, 0-9 and -, for the audit; the caller is not told. Anything else that is given is
    replaced by `refused`, so that no credential gets into the audit by way of an exception's text. `temporary`: it
    could not be found out, and the same call may succeed later.
    """

    def __init__(self, reason: str, *, temporary: bool = False) -> None:
        self.reason = reason if _CODE.fullmatch(reason) else "refused"
        self.temporary = temporary
        super().__init__(self.reason)


@dataclass(frozen=True, slots=True)
class TLSFacts:
    """What the proxy in front says of its own connection with the caller. All empty without a trusted proxy."""

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
    """A request without its body, which nobody has read yet."""

    # As they came, names in lower case, in the order of the request; a name may come several times.
    raw_headers: Sequence[tuple[bytes, bytes]]
    # The caller's address, as far as PROXY_COUNT trusted proxies tell.
    peer: str = ""
    method: str = "POST"
    path: str = "/"
    # Whether there is a proxy that the operator trusts (PROXY_COUNT > 0).
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
        """Returns the value of a header that came exactly once, else "": of two, somebody else may take the other."""
        values = self.values(name)
        return values[0] if len(values) == 1 else ""

    @property
    def bearer(self) -> str:
        """The token of `Authorization: Bearer`, else ""."""
        scheme, _, token = self.one("authorization").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def tls(self) -> TLSFacts:
        """What the trusted proxy says of the caller's TLS. Without one, what the headers say is a visitor's claim."""
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
    """Who somebody is, by the word of an issuer."""

    # Stable: the same agent always has the same one, and nobody else of the issuer's ever gets it.
    agent_id: str
    display_name: str
    issuer: str
    claims: Mapping[str, Any] = field(default_factory=lambda: _NOTHING, repr=False)
    # The agent's own word and no more.
    self_asserted: bool = False
    # Slug of the workspace that an agent unknown so far is admitted to; "" where there is only one.
    workspace: str = ""
    # Set by a verifier that has found the caller already; then nothing is looked up.
    caller: AuthenticatedCaller | None = None


class IdentityVerifier(Protocol):
    """One way to tell who is calling. Made once for each web process, without arguments.

    A static method `schemes() -> dict[str, dict[str, Any]]` may tell what the agent card says of it, as A2A's security
    schemes in JSON, by name. A method `vouched(envelope) -> VerifiedIdentity | None` may tell who it is where that
    takes neither the database nor another server: such callers are let in from an address that tries wrong keys.
    """

    async def verify(self, envelope: Envelope) -> VerifiedIdentity | None:
        """Returns who it is, or None when the request bears nothing for this verifier: the next one is asked.

        Raises IdentityRefused when it does, and it is not good: no other is asked.
        """
        ...


def looks_like_jwt(token: str) -> bool:
    """Tells whether a token has the form of a signed JWT. No key of ours has it."""
    return token.startswith("eyJ") and token.count(".") == 2

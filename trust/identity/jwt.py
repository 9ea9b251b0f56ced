"""JWTs: the verifier of tokens that an identity provider in JWT_ISSUERS signed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from trust.identity.base import Envelope, IdentityRefused, VerifiedIdentity, looks_like_jwt
from trust.identity.jwks import ALGORITHMS, JwksCache, Key, pick, read_jwk, read_pem
from volcanic.outbound import OutboundError
from volcanic.outbound.targets import parse_url

DEFAULT_ALGORITHMS = ("RS256", "ES256", "EdDSA")
SECRET_ALGORITHMS = frozenset({"HS256", "HS384", "HS512"})
REQUIRED_CLAIMS = ("exp", "iat", "sub")
_SHORTEST_SECRET = 32
_LONGEST_TOKEN = 16 * 1024
_SECONDS = {"leeway_seconds": 30, "refresh_seconds": 30, "max_age_seconds": 600, "stale_seconds": 86400}
_SOURCES = ("jwks_url", "keys", "secret")
_OF_TOKENS = ("issuer", "audience", "algorithms", "require", "agent_id_claim", "name_claim", "workspace")
_DISCOVERY = "openid_configuration"
_MEMBERS = frozenset({*_OF_TOKENS, _DISCOVERY, *_SOURCES, *_SECONDS})
# The exceptions of a token that is not valid, each with its reason. The first match counts.
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (jwt.ExpiredSignatureError, "token-expired"),
    (jwt.ImmatureSignatureError, "token-not-yet-valid"),
    (jwt.InvalidAudienceError, "wrong-audience"),
    (jwt.InvalidIssuerError, "wrong-issuer"),
    (jwt.InvalidSignatureError, "bad-signature"),
    (jwt.MissingRequiredClaimError, "missing-claim"),
    (Exception, "bad-token"),
)


@dataclass(frozen=True)
class Issuer:
    """One entry of JWT_ISSUERS, checked."""

    name: str
    audience: list[str]
    algorithms: frozenset[str]
    required: list[str]
    agent_id_claim: str
    name_claim: str
    workspace: str
    leeway: int
    # The source of its keys: exactly one of these three.
    secret: str | None
    keys: list[Key]
    jwks: JwksCache | None

    async def fetch_for(self, header: Mapping[str, Any]) -> None:
        """Fetches the key that a token's header names, if the issuer has a JWKS address. Raises IdentityRefused."""
        if self.jwks is not None:
            await self.jwks.find(header.get("kid"), self._algorithm(header))

    def key_for(self, header: Mapping[str, Any]) -> Any:
        """Returns the key that a token's header names, without a fetch. Raises IdentityRefused for an unknown key."""
        algorithm, kid = self._algorithm(header), header.get("kid")
        if self.secret is not None:
            return self.secret
        key = self.jwks.at_hand(kid, algorithm) if self.jwks else pick(self.keys, kid, algorithm)
        if key is None:
            raise IdentityRefused("unknown-signing-key")
        return key.key

    def _algorithm(self, header: Mapping[str, Any]) -> str:
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in self.algorithms:
            raise IdentityRefused("algorithm-not-allowed")
        return algorithm


def read_issuers(entries: Any) -> dict[str, Issuer]:
    """Returns the issuers in JWT_ISSUERS by name.

    Raises ImproperlyConfigured, whose message names the entry and never holds a key or secret.
    """
    if not isinstance(entries, list) or not entries:
        raise ImproperlyConfigured("JWT_ISSUERS is a JSON list with an object for each issuer, at least one.")
    issuers: dict[str, Issuer] = {}
    for number, entry in enumerate(entries, 1):
        try:
            issuer = _read_issuer(entry)
        except ValueError as error:
            raise ImproperlyConfigured(f"JWT_ISSUERS, entry {number}: {error}.") from None
        if issuer.name in issuers:
            raise ImproperlyConfigured(f"JWT_ISSUERS, entry {number}: the issuer is there twice.")
        issuers[issuer.name] = issuer
    return issuers


def _read_issuer(entry: Any) -> Issuer:
    if not isinstance(entry, dict):
        raise ValueError("not an object")
    if unknown := sorted(set(entry) - _MEMBERS):
        raise ValueError(f"unknown member {', '.join(unknown)}")
    if sum(bool(entry.get(source)) for source in _SOURCES) != 1:
        raise ValueError(f"exactly one of {', '.join(_SOURCES)} is needed")
    seconds = {name: entry.get(name, default) for name, default in _SECONDS.items()}
    if any(type(value) is not int or value < 0 for value in seconds.values()):
        raise ValueError(f"{', '.join(seconds)} are whole numbers, 0 or more")
    if seconds["refresh_seconds"] < 1:  # with 0, each call of a stranger could make us call the issuer
        raise ValueError("refresh_seconds is 1 or more")
    jwks_url, secret = _text(entry, "jwks_url", ""), _text(entry, "secret", "")
    for name in ("jwks_url", _DISCOVERY):
        _check_url(entry, name)
    return Issuer(
        name=_text(entry, "issuer"),
        audience=_texts(entry, "audience"),
        algorithms=_algorithms(entry, secret),
        required=[*REQUIRED_CLAIMS, *_texts(entry, "require", ())],
        agent_id_claim=_text(entry, "agent_id_claim", "sub"),
        name_claim=_text(entry, "name_claim", "name"),
        workspace=_text(entry, "workspace", ""),
        leeway=seconds["leeway_seconds"],
        secret=secret or None,
        keys=_static_keys(entry.get("keys") or []),
        jwks=_jwks(jwks_url, seconds) if jwks_url else None,
    )


def _text(entry: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = entry.get(name, default)
    if not isinstance(value, str) or (not value and default is None):
        raise ValueError(f"{name} is a text")
    return value


def _texts(entry: Mapping[str, Any], name: str, default: Iterable[str] | None = None) -> list[str]:
    value = entry.get(name, default)
    values = [value] if isinstance(value, str) else list(value or ())
    if not all(isinstance(one, str) and one for one in values) or (not values and default is None):
        raise ValueError(f"{name} is a text or a list of texts")
    return values


def _algorithms(entry: Mapping[str, Any], secret: str) -> frozenset[str]:
    """Returns the algorithms of an issuer. Raises ValueError for one that does not fit.

    HS* needs a secret, and all others need public keys, so that no public key can be taken for a secret.
    """
    allowed = SECRET_ALGORITHMS if secret else ALGORITHMS
    algorithms = frozenset(_texts(entry, "algorithms", ("HS256",) if secret else DEFAULT_ALGORITHMS))
    if not algorithms or not algorithms <= allowed:
        raise ValueError(f"algorithms may be {', '.join(sorted(allowed))} here")
    if secret and len(secret.encode()) < _SHORTEST_SECRET:
        raise ValueError(f"secret needs {_SHORTEST_SECRET} characters")
    return algorithms


def _static_keys(entries: Any) -> list[Key]:
    """Returns the keys of an issuer. Each entry is a PEM text, an object with `pem` and `kid`, or a JWK."""
    if not isinstance(entries, list):
        raise ValueError("keys is a list")
    keys = []
    for entry in entries:
        try:
            if isinstance(entry, str):
                keys.append(read_pem(entry))
            elif isinstance(entry, dict) and "pem" in entry:
                keys.append(read_pem(_text(entry, "pem"), _text(entry, "kid")))
            else:
                keys.append(read_jwk(entry))
        except ValueError:
            raise ValueError(
                "keys has an entry that is not a public key, in PEM or JWK, of a supported kind and size"
            ) from None
    return keys


def _check_url(entry: Mapping[str, Any], name: str) -> None:
    if url := _text(entry, name, ""):
        try:
            parse_url(url)
        except OutboundError as error:
            raise ValueError(f"{name}: {error}") from None


def _jwks(url: str, seconds: Mapping[str, int]) -> JwksCache:
    return JwksCache(
        url, refresh=seconds["refresh_seconds"], max_age=seconds["max_age_seconds"], stale=seconds["stale_seconds"]
    )


class JwtVerifier:
    """Accepts tokens that an issuer in JWT_ISSUERS signed for us, until they expire."""

    def __init__(self, issuers: Any = None) -> None:
        self._issuers = read_issuers(settings.JWT_ISSUERS if issuers is None else issuers)

    async def verify(self, envelope: Envelope) -> VerifiedIdentity | None:
        """Returns the identity in a bearer token of one of our issuers, None for other tokens.

        Raises IdentityRefused for a token of one of our issuers that is not valid.
        """
        token, header, issuer = self._read(envelope)
        if issuer is None:
            return None
        await issuer.fetch_for(header)
        return _identity(token, header, issuer)

    def vouched(self, envelope: Envelope) -> VerifiedIdentity | None:
        """Returns the identity by the keys that are at hand, None for a token that is not valid by these keys."""
        try:
            token, header, issuer = self._read(envelope)
            return None if issuer is None else _identity(token, header, issuer)
        except IdentityRefused:
            return None

    @staticmethod
    def schemes() -> dict[str, dict[str, Any]]:
        """Returns the security schemes of tokens for the agent card, with the issuers' OpenID Connect addresses."""
        schemes: dict[str, dict[str, Any]] = {
            "jwt": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}}
        }
        urls = dict.fromkeys(entry[_DISCOVERY] for entry in settings.JWT_ISSUERS if entry.get(_DISCOVERY))
        for number, url in enumerate(urls, 1):
            name = "openIdConnect" if number == 1 else f"openIdConnect{number}"
            schemes[name] = {"openIdConnectSecurityScheme": {"openIdConnectUrl": url}}
        return schemes

    def _read(self, envelope: Envelope) -> tuple[str, dict[str, Any], Issuer | None]:
        """Returns the bearer token, its header and the issuer that it claims; None for an issuer that is not ours.

        The claimed issuer only chooses the keys with which the token is checked.
        """
        token = envelope.bearer
        if not looks_like_jwt(token):
            return token, {}, None
        if len(token) > _LONGEST_TOKEN:
            raise IdentityRefused("bad-token")
        try:
            parts = jwt.decode_complete(token, options={"verify_signature": False})
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise IdentityRefused("bad-token") from None
        name = parts["payload"].get("iss")
        return token, parts["header"], self._issuers.get(name) if isinstance(name, str) else None


def _identity(token: str, header: dict[str, Any], issuer: Issuer) -> VerifiedIdentity:
    claims = _decode(token, issuer.key_for(header), header["alg"], issuer)
    agent_id, name = claims.get(issuer.agent_id_claim), claims.get(issuer.name_claim)
    if not isinstance(agent_id, str) or not agent_id:
        raise IdentityRefused("missing-claim")
    display_name = name if isinstance(name, str) and name else agent_id
    return VerifiedIdentity(agent_id, display_name, issuer.name, claims, workspace=issuer.workspace)


def _decode(token: str, key: Any, algorithm: str, issuer: Issuer) -> dict[str, Any]:
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=issuer.audience,
            issuer=issuer.name,
            leeway=issuer.leeway,
            options={"require": issuer.required},
        )
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise IdentityRefused(next(reason for kind, reason in _REASONS if isinstance(error, kind))) from None
    return claims

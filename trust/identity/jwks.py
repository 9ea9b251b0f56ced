"""Public keys that check tokens' signatures: read from PEM and JWK, and fetched from an issuer's JWKS address."""

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt import PyJWTError
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from trust.identity.base import IdentityRefused
from volcanic import outbound
from volcanic.outbound import OutboundError

logger = logging.getLogger(__name__)

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey | Ed448PublicKey

_TIMEOUT_SECONDS = 5.0
_MOST_BYTES = 256 * 1024
_MOST_KEYS = 100
_FEWEST_RSA_BITS = 2048
_CURVES = {"ES256": "secp256r1", "ES384": "secp384r1", "ES512": "secp521r1"}
_READERS = {"RSA": RSAAlgorithm.from_jwk, "EC": ECAlgorithm.from_jwk, "OKP": OKPAlgorithm.from_jwk}
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", *_CURVES, "EdDSA"})


@dataclass(frozen=True, slots=True)
class Key:
    """A public key, with its key id and algorithm if the issuer names them."""

    key: PublicKey
    kid: str | None = None
    algorithm: str | None = None

    def fits(self, algorithm: str) -> bool:
        """Tells whether this key can check signatures of `algorithm`."""
        if self.algorithm not in (None, algorithm):
            return False
        if algorithm in _CURVES:
            return isinstance(self.key, EllipticCurvePublicKey) and self.key.curve.name == _CURVES[algorithm]
        if algorithm == "EdDSA":
            return isinstance(self.key, Ed25519PublicKey | Ed448PublicKey)
        return isinstance(self.key, RSAPublicKey)


def read_jwk(jwk: Any) -> Key:
    """Reads a public key for signatures from a JWK. Raises ValueError for a symmetric, private, weak or unknown key."""
    if not isinstance(jwk, Mapping):
        raise ValueError("a JWK is an object")
    reader = _READERS.get(str(jwk.get("kty")))
    if reader is None or "d" in jwk or jwk.get("use", "sig") != "sig":
        raise ValueError("not a public key for signatures")
    kid, algorithm = jwk.get("kid"), jwk.get("alg")
    if not isinstance(kid, str | None) or not isinstance(algorithm, str | None):
        raise ValueError("kid and alg are texts")
    try:
        key: Any = reader(dict(jwk))
    except (PyJWTError, UnsupportedAlgorithm, TypeError, AttributeError) as error:
        raise ValueError("the JWK can't be read") from error
    return Key(_strong(key), kid, algorithm)


def read_pem(pem: str, kid: str | None = None) -> Key:
    """Reads the public key from a key or certificate in PEM. Raises ValueError for anything else and for a weak key."""
    data = pem.encode()
    try:
        key = x509.load_pem_x509_certificate(data).public_key() if b"CERTIFICATE" in data else load_pem_public_key(data)
    except UnsupportedAlgorithm as error:
        raise ValueError("this kind of key is not supported") from error
    return Key(_strong(key), kid)


def _strong(key: Any) -> PublicKey:
    if not isinstance(key, PublicKey):
        raise ValueError("this kind of key is not supported")
    if isinstance(key, RSAPublicKey) and key.key_size < _FEWEST_RSA_BITS:
        raise ValueError(f"an RSA key needs {_FEWEST_RSA_BITS} bits")
    return key


def pick(keys: list[Key], kid: str | None, algorithm: str) -> Key | None:
    """Returns the key that a token names by its kid, or the only key that fits if there is no kid; else None.

    Keys without a kid count if no key has the token's kid.
    """
    fitting = [key for key in keys if key.fits(algorithm)]
    if kid is not None:
        fitting = [key for key in fitting if key.kid == kid] or [key for key in fitting if key.kid is None]
    return fitting[0] if len(fitting) == 1 else None


class JwksCache:
    """The keys at a JWKS address, cached in this process.

    The keys are fetched when first needed, when they are `max_age` seconds old, and when a token names an unknown key.
    There is one fetch at a time, and at least `refresh` seconds lie between two fetches, even if tokens keep naming
    unknown keys. While the address does not answer, the last keys still count until they are `stale` seconds old.
    """

    def __init__(self, url: str, *, refresh: float, max_age: float, stale: float) -> None:
        self._url, self._refresh, self._max_age, self._stale = url, refresh, max_age, stale
        self._keys: list[Key] = []
        self._fetched_at = self._tried_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, kid: str | None, algorithm: str) -> Key | None:
        """Returns the key that a token names, else None. Raises IdentityRefused (temporary) without keys at hand."""
        if self._age() > self._max_age:
            await self._update()
        if self.at_hand(kid, algorithm) is None:
            await self._update()
        return self.at_hand(kid, algorithm)

    def at_hand(self, kid: str | None, algorithm: str) -> Key | None:
        """Returns the key that a token names among the keys fetched before. Raises IdentityRefused as `find` does."""
        if self._age() > self._stale:
            raise IdentityRefused("keys-unavailable", temporary=True)
        return pick(self._keys, kid, algorithm)

    def _age(self) -> float:
        return time.monotonic() - self._fetched_at

    async def _update(self) -> None:
        running = self._fetching
        if running is None or running.done() or running.get_loop() is not asyncio.get_running_loop():
            if time.monotonic() - self._tried_at < self._refresh:
                return
            self._tried_at = time.monotonic()
            running = self._fetching = asyncio.create_task(self._fetch())
        # Shielded, since a caller that disconnects must not cancel the fetch for the others.
        await asyncio.shield(running)

    async def _fetch(self) -> None:
        try:
            answer = await outbound.request(
                "GET",
                self._url,
                headers={"accept": "application/jwk-set+json, application/json"},
                timeout=_TIMEOUT_SECONDS,
                max_response_bytes=_MOST_BYTES,
            )
            if answer.status != 200:
                raise ValueError(f"status {answer.status}")
            self._keys = _read_set(answer.body)
            self._fetched_at = time.monotonic()
        except (OutboundError, ValueError, RecursionError) as error:
            logger.warning("the keys at %s could not be fetched: %s", self._url, error)


def _read_set(body: bytes) -> list[Key]:
    found = json.loads(body)
    if not isinstance(found, dict) or not isinstance(found.get("keys"), list):
        raise ValueError("this is no JWK set")
    keys = []
    for jwk in found["keys"][:_MOST_KEYS]:
        try:
            keys.append(read_jwk(jwk))
        except ValueError as error:
            logger.debug("a key of a JWK set is passed over: %s", error)
    return keys

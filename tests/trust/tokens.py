"""An identity provider for tests: keys of every kind, tokens, and a JWKS URL."""

import base64
import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from trust.identity import Envelope

ISSUER, AUDIENCE = "https://id.example", "https://assistant.example"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
WEAK = rsa.generate_private_key(public_exponent=65537, key_size=1024)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
SECRET = "a secret of more than thirty-two characters"
NOW = int(time.time())
_WRITERS: dict[Any, Any] = {
    rsa.RSAPrivateKey: RSAAlgorithm.to_jwk,
    ec.EllipticCurvePrivateKey: ECAlgorithm.to_jwk,
    ed25519.Ed25519PrivateKey: OKPAlgorithm.to_jwk,
}


def jwk(key: Any, kid: str | None = None, **members: Any) -> dict[str, Any]:
    """Returns the public half of a key as a JWK."""
    writer = next(writer for kind, writer in _WRITERS.items() if isinstance(key, kind))
    written: dict[str, Any] = writer(key.public_key(), as_dict=True)
    return {**written, **({"kid": kid} if kid else {}), **members}


def pem(key: Any) -> str:
    """Returns the public half of a key as PEM."""
    text: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return text.decode()


def _unsupported() -> str:
    der = ED.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    body = base64.encodebytes(der.replace(bytes([0x2B, 0x65, 0x70]), bytes([0x2B, 0x65, 0x79]))).decode()
    return f"-----BEGIN PUBLIC KEY-----\n{body}-----END PUBLIC KEY-----\n"


UNSUPPORTED = _unsupported()
"""The PEM of a public key of an unknown kind: Ed25519's with another number in its object identifier."""


def token(key: Any = RSA, algorithm: str = "RS256", *, kid: str | None = None, **claims: Any) -> str:
    """Returns a valid token for ISSUER and AUDIENCE. A claim given as None is left out."""
    now = int(time.time())
    values = {"iss": ISSUER, "aud": AUDIENCE, "sub": "agent-1", "iat": now, "exp": now + 300} | claims
    values = {name: value for name, value in values.items() if value is not None}
    return jwt.encode(values, key, algorithm, headers={"kid": kid} if kid else None)


def forged(header: dict[str, Any], signature: bytes = b"", **claims: Any) -> str:
    """Returns a token with the given header and signature, valid or not."""
    now = int(time.time())
    values = {"iss": ISSUER, "aud": AUDIENCE, "sub": "agent-1", "iat": now, "exp": now + 300} | claims
    parts = [json.dumps(header).encode(), json.dumps(values).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def bearer(text: str) -> Envelope:
    """Returns an envelope with a bearer token."""
    return Envelope.of({"Authorization": f"Bearer {text}"}, path="/a2a")


def entry(**members: Any) -> dict[str, Any]:
    """Returns an entry of JWT_ISSUERS with the given members. A member given as None is left out."""
    values = {"issuer": ISSUER, "audience": AUDIENCE, "keys": [jwk(RSA, "rsa"), jwk(EC, "ec"), jwk(ED, "ed")]} | members
    return {name: value for name, value in values.items() if value is not None}

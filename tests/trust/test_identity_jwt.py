"""Signed tokens: claims, algorithms and keys that are accepted or refused, and wrong settings of issuers."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.core.exceptions import ImproperlyConfigured

from tests.trust.tokens import (
    AUDIENCE,
    EC,
    ED,
    ISSUER,
    NOW,
    OTHER_RSA,
    RSA,
    SECRET,
    UNSUPPORTED,
    WEAK,
    bearer,
    entry,
    forged,
    jwk,
    pem,
    token,
)
from trust.identity import Envelope, IdentityRefused, VerifiedIdentity
from trust.identity.jwt import JwtVerifier


async def verify(text: str, *entries: dict[str, Any]) -> VerifiedIdentity | None:
    """What a verifier with these issuers says of a token."""
    return await JwtVerifier(list(entries) or [entry()]).verify(bearer(text))


async def reason(text: str, *entries: dict[str, Any]) -> str:
    """Why a verifier with these issuers refuses a token."""
    with pytest.raises(IdentityRefused) as caught:
        await verify(text, *entries)
    return caught.value.reason


@pytest.mark.parametrize(("key", "algorithm", "kid"), [(RSA, "RS256", "rsa"), (EC, "ES256", "ec"), (ED, "EdDSA", "ed")])
async def test_a_good_token(key: Any, algorithm: str, kid: str) -> None:
    """By kid, and without one where a single key fits; the name is the `name` claim or the id."""
    for named in (kid, None):
        found = await verify(token(key, algorithm, kid=named, name="Travel Bot"))
        assert found is not None
        assert (found.agent_id, found.display_name, found.issuer) == ("agent-1", "Travel Bot", ISSUER)
        assert (found.self_asserted, found.workspace, found.caller) == (False, "", None)
        assert found.claims["aud"] == AUDIENCE
    plain = await verify(token(key, algorithm, kid=kid))
    assert plain is not None
    assert plain.display_name == "agent-1"


@pytest.mark.parametrize("key", [RSA, EC, ED])
async def test_keys_as_pem(key: Any) -> None:
    algorithm = {RSA: "RS256", EC: "ES256", ED: "EdDSA"}[key]
    assert await verify(token(key, algorithm), entry(keys=[pem(key)]))
    assert await verify(token(key, algorithm, kid="a"), entry(keys=[{"pem": pem(key), "kid": "a"}]))
    other = entry(keys=[{"pem": pem(key), "kid": "b"}])
    assert await reason(token(key, algorithm, kid="a"), other) == "unknown-signing-key"


async def test_claims_are_mapped_by_the_issuers_rule() -> None:
    rule = entry(agent_id_claim="client_id", name_claim="azp", workspace="main", require=["scope"])
    found = await verify(token(kid="rsa", client_id="c-7", azp="Planner", scope="a2a"), rule)
    assert found is not None
    assert (found.agent_id, found.display_name, found.workspace) == ("c-7", "Planner", "main")
    assert await reason(token(kid="rsa", client_id="c-7"), rule) == "missing-claim"
    assert await reason(token(kid="rsa", scope="a2a"), rule) == "missing-claim"
    assert await reason(token(kid="rsa", scope="a2a", client_id=7), rule) == "missing-claim"


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"aud": "https://elsewhere.example"}, "wrong-audience"),
        ({"aud": None}, "missing-claim|wrong-audience"),
        ({"exp": NOW - 3600}, "token-expired"),
        ({"nbf": NOW + 3600}, "token-not-yet-valid"),
        ({"iat": NOW + 3600}, "token-not-yet-valid"),
        ({"exp": None}, "missing-claim"),
        ({"iat": None}, "missing-claim"),
        ({"sub": None}, "missing-claim"),
        ({"exp": "never"}, "bad-token"),
        ({"exp": [1]}, "bad-token"),
        ({"exp": float("inf")}, "bad-token"),
        ({"sub": ""}, "missing-claim"),
    ],
)
async def test_claims_that_are_not_good(claims: dict[str, Any], why: str) -> None:
    assert await reason(token(kid="rsa", **claims)) in why.split("|")


async def test_clocks_may_differ_by_the_leeway() -> None:
    late = token(kid="rsa", exp=int(time.time()) - 20)
    assert await verify(late)
    assert await reason(late, entry(leeway_seconds=0)) == "token-expired"


async def test_what_is_not_ours() -> None:
    """Another issuer's tokens, and texts that are no JWT, are left to the next verifier."""
    assert await verify(token(kid="rsa", iss="https://other.example")) is None
    assert await verify(token(kid="rsa", iss=None)) is None
    for text in ("vk_abc", "", "a.b.c", "eyJa.b"):
        assert await verify(text) is None
    twice = Envelope.of([("Authorization", f"Bearer {token(kid='rsa')}")] * 2)
    assert await JwtVerifier([entry()]).verify(twice) is None


async def test_two_issuers_keep_their_keys_apart() -> None:
    """One issuer's key signs nothing in another's name, under any kid."""
    other = entry(issuer="https://other.example", keys=[jwk(OTHER_RSA, "rsa")])
    assert await verify(token(OTHER_RSA, kid="rsa", iss="https://other.example"), entry(), other)
    assert await reason(token(OTHER_RSA, kid="rsa"), entry(), other) == "bad-signature"
    assert await reason(token(kid="rsa", iss="https://other.example"), entry(), other) == "bad-signature"


async def test_unsigned_tokens() -> None:
    for alg in ("none", "None", "nOnE", ""):
        assert await reason(forged({"alg": alg, "kid": "rsa"})) in {"algorithm-not-allowed", "bad-token"}
    assert await reason(forged({"kid": "rsa"})) in {"algorithm-not-allowed", "bad-token"}
    assert await reason(forged({"alg": "RS256", "kid": "rsa"})) == "bad-signature"
    good = token(kid="rsa")
    assert await reason(good[: good.rindex(".") + 1]) == "bad-signature"


@pytest.mark.parametrize("public", [pem(RSA), json.dumps(jwk(RSA, "rsa"))])
async def test_a_public_key_is_no_secret(public: str) -> None:
    """HS256 with the public key as secret, signed by hand as no library would."""
    unsigned = forged({"alg": "HS256", "kid": "rsa"}).rstrip(".")
    mac = hmac.new(public.encode(), unsigned.encode(), hashlib.sha256).digest()
    attack = f"{unsigned}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
    assert await reason(attack) == "algorithm-not-allowed"
    assert await reason(attack, entry(keys=[pem(RSA)])) == "algorithm-not-allowed"


async def test_the_header_brings_no_keys() -> None:
    """jwk, jku and x5u of a token's own header count for nothing; nor does a path for a kid, or another key's kid."""
    for header in ({"jwk": jwk(OTHER_RSA)}, {"jku": "https://evil.example/keys"}, {"x5u": "https://evil.example/c"}):
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "x", "iat": NOW, "exp": NOW + 3600}
        evil = jwt.encode(claims, OTHER_RSA, "RS256", headers={"kid": "rsa", **header})
        assert await reason(evil) == "bad-signature"
    for kid in ("../../dev/null", "' OR 1=1 --", "ec", "ed", "x" * 5000):
        assert await reason(token(kid=kid)) == "unknown-signing-key"
    assert await reason(forged({"alg": "RS256", "kid": {"a": 1}}, b"x")) == "bad-token"
    assert await reason(forged({"alg": ["RS256"], "kid": "rsa"}, b"x")) in {"algorithm-not-allowed", "bad-token"}


async def test_garbage() -> None:
    deep = base64.urlsafe_b64encode(b'{"a":' + b"[" * 11000).rstrip(b"=").decode()
    for text in ("eyJ..", "eyJa.eyJb.c", f"{deep}.{deep}.x", "eyJ\u00e9.a.b", "eyJ" + "a" * 20000 + ".b.c"):
        assert await reason(text) == "bad-token"
    for claims in ({"iss": ["a"]}, {"iss": {"a": 1}}):
        assert await verify(forged({"alg": "RS256"}, **claims)) is None


async def test_algorithms_are_the_issuers() -> None:
    only = entry(algorithms=["PS256"])
    assert await verify(token(algorithm="PS256", kid="rsa"), only)
    assert await reason(token(kid="rsa"), only) == "algorithm-not-allowed"
    assert await reason(token(algorithm="PS256", kid="rsa")) == "algorithm-not-allowed"
    bound = entry(keys=[jwk(RSA, "rsa", alg="RS512")], algorithms=["RS256", "RS512"])
    assert await reason(token(kid="rsa"), bound) == "unknown-signing-key"
    p384 = ec.generate_private_key(ec.SECP384R1())
    assert await verify(token(p384, "ES384", kid="e"), entry(keys=[jwk(p384, "e")], algorithms=["ES384"]))


async def test_a_secret_where_one_is_given() -> None:
    shared = entry(keys=None, secret=SECRET)
    assert await verify(token(SECRET, "HS256"), shared)
    assert await reason(token(SECRET + "x", "HS256"), shared) == "bad-signature"
    assert await reason(token(RSA), shared) == "algorithm-not-allowed"
    assert await reason(forged({"alg": "none"}), shared) == "algorithm-not-allowed"


PRIVATE = RSA.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({}, "list"),
        ([], "list"),
        (["x"], "not an object"),
        ([entry(issuer=None)], "issuer is a text"),
        ([entry(audience=None)], "audience"),
        ([entry(audience=[])], "audience"),
        ([entry(keys=None)], "exactly one"),
        ([entry(secret=SECRET)], "exactly one"),
        ([entry(keys=None, secret="short")], "32 characters"),
        ([entry(algorithms=["HS256"])], "algorithms may be"),
        ([entry(algorithms=["none"])], "algorithms may be"),
        ([entry(keys=None, secret=SECRET, algorithms=["HS256", "RS256"])], "algorithms may be"),
        ([entry(keys=None, secret=SECRET, algorithms=["none"])], "algorithms may be"),
        ([entry(keys=["no pem"])], "not a public key"),
        ([entry(keys=[PRIVATE])], "not a public key"),
        ([entry(keys=[UNSUPPORTED])], "not a public key"),
        ([entry(keys=[{"pem": UNSUPPORTED, "kid": "a"}])], "not a public key"),
        ([entry(keys=[pem(WEAK)])], "not a public key"),
        ([entry(keys=[{"kty": "oct", "k": "c2VjcmV0"}])], "not a public key"),
        ([entry(keys=[jwk(RSA, use="enc")])], "not a public key"),
        ([entry(keys=None, jwks_url="http://id.example/keys")], "https"),
        ([entry(leeway_seconds=-1)], "whole numbers"),
        ([entry(leeway_seconds=True)], "whole numbers"),
        ([entry(refresh_seconds=0)], "1 or more"),
        ([entry(aud="x")], "unknown member aud"),
        ([entry(), entry()], "twice"),
    ],
)
def test_settings_that_are_wrong(entries: Any, says: str) -> None:
    """Named at the start, and no key in the message."""
    with pytest.raises(ImproperlyConfigured, match=says) as caught:
        JwtVerifier(entries)
    assert SECRET not in str(caught.value)
    assert "PRIVATE" not in str(caught.value)

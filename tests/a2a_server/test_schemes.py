"""Security schemes: the cards declare exactly the credentials that the authenticator takes."""

from typing import Any

import pytest
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from django.core.exceptions import ImproperlyConfigured
from pytest_django.fixtures import Settings

from a2a_server.http.cards import extended_card, public_card
from tests.conftest import Keyed
from tests.trust.tokens import ISSUER, entry, token
from trust.identity import Envelope, IdentityRefused, VerifiedIdentity
from trust.identity.jwt import JwtVerifier
from trust.identity.resolve import Resolver
from trust.selectors import AuthenticatedCaller
from volcanic.aio.db import run_db

KEY, JWT, NAME = (
    *("trust.identity.api_key.ApiKeyVerifier", "trust.identity.jwt.JwtVerifier", "trust.identity.name.NameVerifier"),
)
SILENT = "tests.a2a_server.test_schemes.Silent"
DISCOVERY = "https://id.example/.well-known/openid-configuration"
OTHER_DISCOVERY = "https://other.example/openid"
ISSUERS = [
    entry(openid_configuration=DISCOVERY),
    entry(issuer="https://a.example", openid_configuration=OTHER_DISCOVERY),
    entry(issuer="https://b.example", openid_configuration=DISCOVERY),
    entry(issuer="https://c.example"),
]


class Silent:
    """A verifier that the card says nothing of."""

    async def verify(self, envelope: Envelope) -> VerifiedIdentity | None:
        """Knows nobody."""
        return None


def _headers(scheme: dict[str, Any], key: str) -> dict[str, str]:
    """Returns what a caller sends that does as a scheme of a card says."""
    ((kind, said),) = scheme.items()
    match kind, said:
        case "apiKeySecurityScheme", {"location": "header", "name": "X-Agent-Name"}:
            return {"X-Agent-Name": "bob"}
        case "apiKeySecurityScheme", {"location": "header", "name": name}:
            return {name: key}
        case "httpAuthSecurityScheme", {"scheme": scheme_name, "bearerFormat": "JWT"}:
            return {"Authorization": f"{scheme_name} {token()}"}
        case "httpAuthSecurityScheme", {"scheme": scheme_name}:
            return {"Authorization": f"{scheme_name} {key}"}
        case "openIdConnectSecurityScheme", {"openIdConnectUrl": url}:
            assert url in (DISCOVERY, OTHER_DISCOVERY)
            return {"Authorization": f"Bearer {token()}"}
    raise AssertionError(f"a scheme that nobody knows: {scheme}")


EVERY = {
    "apiKey": {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}},
    "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
    "jwt": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
    "openIdConnect": {"openIdConnectSecurityScheme": {"openIdConnectUrl": DISCOVERY}},
    "openIdConnect2": {"openIdConnectSecurityScheme": {"openIdConnectUrl": OTHER_DISCOVERY}},
    "name": {
        "apiKeySecurityScheme": {
            "description": "Your name, without proof.",
            "location": "header",
            "name": "X-Agent-Name",
        }
    },
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("verifiers", "names"),
    [
        ([KEY], ["apiKey", "bearer"]),
        ([JWT], ["jwt", "openIdConnect", "openIdConnect2"]),
        ([NAME, SILENT], ["name"]),
        ([SILENT, JWT, KEY], ["jwt", "openIdConnect", "openIdConnect2", "apiKey", "bearer"]),
        ([KEY, JWT, NAME], list(EVERY)),
    ],
)
async def test_the_card_declares_what_the_door_takes(
    settings: Settings, friend: Keyed, verifiers: list[str], names: list[str]
) -> None:
    settings.IDENTITY_VERIFIERS, settings.JWT_ISSUERS, settings.ADMIT_UNKNOWN = verifiers, ISSUERS, [ISSUER, "name"]
    card = agent_card_to_dict(await run_db(public_card))
    declared = card["securityRequirements"]
    assert [list(required["schemes"]) for required in declared] == [[name] for name in names]
    assert set(card["securitySchemes"]) == set(names)
    caller = AuthenticatedCaller(friend.caller.pk, "friend", friend.caller.workspace_id, None, False)
    assert (await run_db(extended_card, caller=caller)).security_schemes.keys() == set(names)
    resolver = Resolver()
    for name, scheme in EVERY.items():
        envelope = Envelope.of(_headers(scheme, friend.key))
        if name in names:
            # Beside ours the document has the members of 0.3.
            said = {kind: value for kind, value in card["securitySchemes"][name].items() if kind in scheme}
            assert said == scheme
            assert await resolver.resolve(envelope)
        else:
            with pytest.raises(IdentityRefused):
                await resolver.resolve(envelope)


def test_a_card_for_old_clients_declares_tokens_too(settings: Settings, db: None) -> None:
    settings.IDENTITY_VERIFIERS, settings.JWT_ISSUERS = [JWT], ISSUERS[:1]
    schemes = agent_card_to_dict(public_card())["securitySchemes"]
    assert (schemes["jwt"]["type"], schemes["jwt"]["bearerFormat"]) == ("http", "JWT")
    assert (schemes["openIdConnect"]["type"], schemes["openIdConnect"]["openIdConnectUrl"]) == (
        "openIdConnect",
        DISCOVERY,
    )


@pytest.mark.parametrize(
    "url", ["http://id.example/x", "id.example", 1, ["https://id.example"], "https://a:b@id.example"]
)
def test_a_discovery_document_is_at_an_https_url(url: object) -> None:
    with pytest.raises(ImproperlyConfigured, match="openid_configuration"):
        JwtVerifier([entry(openid_configuration=url)])

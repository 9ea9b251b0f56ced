"""The agent cards."""

from typing import Any

import httpx
import pytest

from tests.conftest import Keyed
from tests.product import Api, Product, message
from tests.waiting import PATIENCE
from trust.models import Skill
from trust.services import grant_add, grant_revoke, skill_create, skill_set_enabled
from volcanic.models import Workspace

PUBLIC = "/.well-known/agent-card.json"


def ids(card: dict[str, Any]) -> list[str]:
    """Returns the ids of a card's skills, in order."""
    return [skill["id"] for skill in card["skills"]]


def skill(workspace: Workspace, slug: str, **fields: Any) -> Skill:
    """Makes a skill whose texts name its workspace."""
    text = f"{slug} of {workspace.slug}"
    return skill_create(workspace=workspace, slug=slug, name=text, description=text, **fields)


@pytest.fixture
def card(product: Product, transactional_db: None) -> httpx.Response:
    """The public card as anybody gets it."""
    return httpx.get(product.url + PUBLIC, timeout=PATIENCE)


def test_the_public_card_is_minimal_and_absolute(card: httpx.Response, product: Product, workspace: Workspace) -> None:
    """Nothing of a workspace but what it advertises; addresses from PUBLIC_URL, not from Host."""
    spoofed = httpx.get(
        product.url + PUBLIC, timeout=PATIENCE, headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    )
    assert spoofed.json() == card.json()
    body = card.json()
    assert all(interface["url"].startswith(product.url) for interface in body["supportedInterfaces"])
    assert ids(body) == ["chat", "notify-user", "query-availability"]
    assert set(body["securitySchemes"]) == {"apiKey", "bearer"}
    assert body["capabilities"] == {"streaming": True, "pushNotifications": True, "extendedAgentCard": True}
    for private in ("main", "pydantic", "uvicorn", "/"):
        assert private not in body["description"]


def test_the_card_is_under_its_old_name_too(card: httpx.Response, product: Product) -> None:
    """One document that 0.3 clients can read as well."""
    old = httpx.get(product.url + "/.well-known/agent.json", timeout=PATIENCE).json()
    assert old == card.json()
    assert (old["protocolVersion"], old["url"], old["preferredTransport"]) == ("0.3", f"{product.url}/a2a", "JSONRPC")
    assert old["supportsAuthenticatedExtendedCard"] is True


def test_validators(card: httpx.Response, product: Product) -> None:
    """§8.6."""
    assert card.headers["cache-control"] == "public, max-age=60"
    for headers in (
        {"If-None-Match": card.headers["etag"]},
        {"If-None-Match": f'"x", W/{card.headers["etag"]}'},
        {"If-Modified-Since": card.headers["last-modified"]},
    ):
        answer = httpx.get(product.url + PUBLIC, timeout=PATIENCE, headers=headers)
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == card.headers["etag"]
    for headers in (
        {"If-None-Match": '"x"', "If-Modified-Since": card.headers["last-modified"]},
        {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"If-Modified-Since": "nonsense"},
    ):
        assert httpx.get(product.url + PUBLIC, timeout=PATIENCE, headers=headers).status_code == 200
    assert httpx.head(product.url + PUBLIC).status_code == 200
    assert httpx.post(product.url + PUBLIC, timeout=PATIENCE).status_code == 405


def test_each_interface_serves_what_it_says(api: Api, card: httpx.Response) -> None:
    """Our own card, walked; what it declares is there."""
    assert card.json()["capabilities"]["streaming"] is True
    with api.stream("SendStreamingMessage", {"message": message()}) as events:
        assert "task" in next(events)
    for interface in card.json()["supportedInterfaces"]:
        url, version = interface["url"], interface["protocolVersion"]
        headers = {"A2A-Version": version}
        old = {"kind": "message", "role": "user", "messageId": "m-" + url, "parts": [{"kind": "text", "text": "hi"}]}
        match interface["protocolBinding"], version:
            case "JSONRPC", "1.0":
                body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message()}}
                result = api.http.post(url, json=body, headers=headers).json()["result"]
                assert result["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
            case "HTTP+JSON", "1.0":
                result = api.http.post(f"{url}/message:send", json={"message": message()}, headers=headers).json()
                assert result["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
            case "JSONRPC", "0.3":
                body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": old}}
                result = api.http.post(url, json=body, headers=headers).json()["result"]
                assert (result["kind"], result["status"]["state"]) == ("task", "completed")
            case "HTTP+JSON", "0.3":
                sent = {"request": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}}
                result = api.http.post(f"{url}/v1/message:send", json=sent, headers=headers).json()
                assert result["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
            case other:
                pytest.fail(f"an interface that nobody serves: {other}")


def test_the_extended_card_is_the_callers(api: Api, product: Product, friend: Keyed, workspace: Workspace) -> None:
    """§3.1.11: the workspace's fields, else settings and PERSONA.md; the caller's skills, at once after a grant."""
    folder = product.folder / "workspaces" / workspace.slug
    folder.mkdir(parents=True, exist_ok=True)
    persona = folder / "PERSONA.md"
    persona.write_text("\n\n# Books trips for Olivia\nMore.\n")
    card = api.result("GetExtendedAgentCard")
    persona.unlink()  # the product and its folders are other tests', too
    assert (card["name"], card["description"]) == ("Volcanic assistant", "Books trips for Olivia")
    assert ids(card) == ["chat", "notify-user"]
    grant_add(caller=friend.caller, slug="query-availability")
    Workspace.objects.update(card_name="Olivia's assistant", card_description="Plans.")
    rest = api.http.get("/a2a/v1/extendedAgentCard")
    card = rest.json()
    assert (card["name"], card["description"]) == ("Olivia's assistant", "Plans.")
    assert ids(card) == ["chat", "notify-user", "query-availability"]
    assert rest.headers["cache-control"] == "private, max-age=0"
    again = api.http.get("/a2a/v1/extendedAgentCard", headers={"If-None-Match": rest.headers["etag"]})
    assert again.status_code == 304
    old = api.rpc("agent/getAuthenticatedExtendedCard")["result"]
    assert (old["name"], old["protocolVersion"]) == ("Olivia's assistant", "0.3")
    assert api.http.get("/a2a/v1/card").json()["name"] == "Olivia's assistant"
    assert httpx.get(f"{product.url}/a2a/v1/extendedAgentCard", timeout=PATIENCE).status_code == 401


def test_the_public_card_shows_what_is_advertised(
    product: Product, transactional_db: None, workspace: Workspace, other_workspace: Workspace
) -> None:
    """Of all workspaces, one for each id, and nothing that tells of whose they are or how many."""
    modes = {"input_modes": ["image/png"], "output_modes": ["text/csv"]}
    skill(other_workspace, "book-table", tags=["dining"], examples=["A table for two"], instructions="x", **modes)
    skill(workspace, "book-table")
    skill(workspace, "zebra", aliases=["quagga"], tools=["recall"])
    skill(workspace, "apple")
    skill(workspace, "internal", advertised=False)
    withdrawn = skill(workspace, "withdrawn")
    skill_set_enabled(skill=withdrawn, enabled=False)
    body = httpx.get(product.url + PUBLIC, timeout=PATIENCE).json()
    assert ids(body) == ["chat", "notify-user", "query-availability", "apple", "book-table", "zebra"]
    by_id = {shown["id"]: shown for shown in body["skills"]}
    assert by_id["book-table"] == {
        "id": "book-table",
        "name": "book-table of other",
        "description": "book-table of other",
        "tags": ["dining"],
        "examples": ["A table for two"],
        "inputModes": ["image/png"],
        "outputModes": ["text/csv"],
    }
    assert "inputModes" not in by_id["apple"]
    assert set(by_id["zebra"]) <= {"id", "name", "description", "tags"}
    assert body["name"] == "Volcanic assistant"
    Skill.objects.filter(slug="chat").update(name="Changed")
    assert httpx.get(product.url + PUBLIC, timeout=PATIENCE).json()["skills"][0]["name"] == "Changed"


def test_the_extended_card_changes_with_the_next_request(
    api: Api, product: Product, friend: Keyed, stranger: Keyed, workspace: Workspace
) -> None:
    """After a grant, when the skill is withdrawn, and after the grant is revoked; on both bindings, for it alone."""

    def shown() -> list[str]:
        jsonrpc = ids(api.result("GetExtendedAgentCard"))
        assert ids(api.http.get("/a2a/v1/extendedAgentCard").json()) == jsonrpc
        return jsonrpc

    made = skill(workspace, "book-table", advertised=False, output_modes=["text/csv"])
    skill(workspace, "not-granted")
    assert shown() == ["chat", "notify-user"]
    grant_add(caller=friend.caller, slug="book-table")
    assert shown() == ["chat", "notify-user", "book-table"]
    assert api.result("GetExtendedAgentCard")["skills"][2]["outputModes"] == ["text/csv"]
    with product.api(stranger.key) as other:
        assert ids(other.result("GetExtendedAgentCard")) == ["chat", "notify-user"]
    skill_set_enabled(skill=made, enabled=False)
    assert shown() == ["chat", "notify-user"]
    skill_set_enabled(skill=made, enabled=True)
    assert shown() == ["chat", "notify-user", "book-table"]
    grant_revoke(caller=friend.caller, slug="book-table")
    assert shown() == ["chat", "notify-user"]
    grant_revoke(caller=friend.caller, slug="chat")
    assert shown() == ["chat", "notify-user"]


def test_each_scheme_lets_in(api: Api, product: Product, card: httpx.Response, friend: Keyed) -> None:
    """Our own card: credentials sent as each scheme declares are accepted."""
    schemes = card.json()["securitySchemes"]
    assert [set(required["schemes"]) for required in card.json()["securityRequirements"]] == [{"apiKey"}, {"bearer"}]
    assert api.result("GetExtendedAgentCard")["securitySchemes"].keys() == schemes.keys()
    headers = {
        schemes["apiKey"]["apiKeySecurityScheme"]["name"]: friend.key,
        "Authorization": f"{schemes['bearer']['httpAuthSecurityScheme']['scheme']} {friend.key}",
    }
    for name, value in headers.items():
        assert httpx.get(f"{product.url}/a2a/v1/tasks", timeout=PATIENCE, headers={name: value}).status_code == 200
        assert (
            httpx.get(f"{product.url}/a2a/v1/tasks", timeout=PATIENCE, headers={name: value + "x"}).status_code == 401
        )

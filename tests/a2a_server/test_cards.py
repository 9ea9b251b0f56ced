"""The agent cards."""

import httpx
import pytest

from tests.conftest import Keyed
from tests.product import Api, Product, message
from trust.services import grant_add
from volcanic.models import Workspace

PUBLIC = "/.well-known/agent-card.json"


@pytest.fixture
def card(product: Product, transactional_db: None) -> httpx.Response:
    """The public card as anybody gets it."""
    return httpx.get(product.url + PUBLIC)


def test_the_public_card_is_minimal_and_absolute(card: httpx.Response, product: Product, workspace: Workspace) -> None:
    """B89, B91: nothing of a workspace; addresses from PUBLIC_URL, whatever Host says."""
    spoofed = httpx.get(product.url + PUBLIC, headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example"})
    assert spoofed.json() == card.json()
    body = card.json()
    assert all(interface["url"].startswith(product.url) for interface in body["supportedInterfaces"])
    assert [skill["id"] for skill in body["skills"]] == ["chat"]
    assert set(body["securitySchemes"]) == {"apiKey", "bearer"}
    assert body["capabilities"] == {"streaming": True, "pushNotifications": True, "extendedAgentCard": True}
    for private in ("main", "pydantic", "uvicorn", "/"):
        assert private not in body["description"]


def test_the_card_is_under_its_old_name_too(card: httpx.Response, product: Product) -> None:
    """B115, B117, B109: one document that 0.3 clients can read as well."""
    old = httpx.get(product.url + "/.well-known/agent.json").json()
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
        answer = httpx.get(product.url + PUBLIC, headers=headers)
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == card.headers["etag"]
    for headers in (
        {"If-None-Match": '"x"', "If-Modified-Since": card.headers["last-modified"]},
        {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"If-Modified-Since": "nonsense"},
    ):
        assert httpx.get(product.url + PUBLIC, headers=headers).status_code == 200
    assert httpx.head(product.url + PUBLIC).status_code == 200
    assert httpx.post(product.url + PUBLIC).status_code == 405


def test_each_interface_serves_what_it_says(api: Api, card: httpx.Response) -> None:
    """B17, B93: our own card, walked; what it declares is there."""
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
    (folder / "PERSONA.md").write_text("\n\n# Books trips for Olivia\nMore.\n")
    card = api.result("GetExtendedAgentCard")
    assert (card["name"], card["description"]) == ("Volcanic assistant", "Books trips for Olivia")
    assert [skill["id"] for skill in card["skills"]] == ["chat"]
    grant_add(caller=friend.caller, slug="notify-user")
    Workspace.objects.update(card_name="Olivia's assistant", card_description="Plans.")
    rest = api.http.get("/a2a/v1/extendedAgentCard")
    card = rest.json()
    assert (card["name"], card["description"]) == ("Olivia's assistant", "Plans.")
    assert {skill["id"] for skill in card["skills"]} == {"chat", "notify-user"}
    assert rest.headers["cache-control"] == "private, max-age=0"
    again = api.http.get("/a2a/v1/extendedAgentCard", headers={"If-None-Match": rest.headers["etag"]})
    assert again.status_code == 304
    old = api.rpc("agent/getAuthenticatedExtendedCard")["result"]
    assert (old["name"], old["protocolVersion"]) == ("Olivia's assistant", "0.3")
    assert api.http.get("/a2a/v1/card").json()["name"] == "Olivia's assistant"
    assert httpx.get(f"{product.url}/a2a/v1/extendedAgentCard").status_code == 401

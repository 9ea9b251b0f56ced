"""Request ids and the acting user, with both of Django's handlers and in the running product."""

import json
import re

import httpx
import pytest
import structlog
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from pytest_django.fixtures import Settings

from tests.product import Product
from tests.waiting import PATIENCE, wait_for
from volcanic.acting import current
from volcanic.models import Presence, Workspace

GIVEN = "abc-DEF-123"
BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture(autouse=True)
def _probe(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.volcanic.probe_urls"


@pytest.mark.django_db
@pytest.mark.parametrize("view", ["/sync", "/async"])
def test_wsgi(owner: User, view: str) -> None:
    client = Client()
    client.force_login(owner, backend=BACKEND)
    answer = client.get(view, headers={"X-Request-ID": GIVEN})
    assert answer.json() == {"name": "owner olivia", "id": GIVEN, "bound": GIVEN}
    assert answer["X-Request-ID"] == GIVEN
    assert current().name == "system"
    assert "request_id" not in structlog.contextvars.get_contextvars()
    assert Presence.objects.get().user == owner


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("view", ["/sync", "/async"])
async def test_asgi(owner: User, view: str) -> None:
    client = AsyncClient()
    await client.aforce_login(owner, backend=BACKEND)
    answer = await client.get(view, headers={"X-Request-ID": GIVEN})
    assert answer.json() == {"name": "owner olivia", "id": GIVEN, "bound": GIVEN}
    assert answer["X-Request-ID"] == GIVEN
    assert current().name == "system"
    assert await Presence.objects.filter(user=owner).aexists()


@pytest.mark.django_db
@pytest.mark.parametrize("given", ["", "short", "x" * 65, "with space", "ünïcode-id", "semi;colon"])
def test_an_odd_id_is_replaced(given: str) -> None:
    answers = [Client().get("/sync", headers={"X-Request-ID": given}) for _ in range(2)]
    ids = [answer["X-Request-ID"] for answer in answers]
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in ids)
    assert ids[0] != ids[1]
    assert answers[0].json() == {"name": "system", "id": ids[0], "bound": ids[0]}


@pytest.mark.django_db
def test_customers_and_strangers_are_no_owners() -> None:
    client = Client()
    client.force_login(User.objects.create_user("carl"), backend=BACKEND)
    assert client.get("/sync").json()["name"] == "system"
    assert not Presence.objects.exists()


def test_in_the_running_product(transactional_db: None, product: Product, owner: User, workspace: Workspace) -> None:
    """The log lines of a view that runs in another thread tell the id and who acts."""
    product.revive()
    with httpx.Client(
        base_url=product.url, follow_redirects=True, headers={"X-Request-ID": GIVEN}, timeout=PATIENCE
    ) as browser:
        assert browser.get("/static/volcanic/favicon.svg").headers.get("X-Request-ID") is None
        browser.get("/admin/login/")
        form = {"username": "olivia", "password": "olivia-password", "next": "/admin/"}
        token = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        home = browser.post("/admin/login/", data=form | token)
        assert (home.status_code, home.headers["X-Request-ID"]) == (200, GIVEN)
        assert Presence.objects.get().user == owner
        token = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        browser.post(f"/admin/volcanic/workspace/{workspace.pk}/send-test/", data=token)
    said = f"owner olivia tried 0 channels of workspace {workspace.pk}"
    wait_for(lambda: said in product.log("web"))
    (line,) = [json.loads(line) for line in product.log("web").splitlines() if said in line]
    assert line["request_id"] == GIVEN

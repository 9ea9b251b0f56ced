"""The probes: answered under any host name, and in plain HTTP."""

import httpx
import pytest
from django.db import OperationalError
from pytest_django.fixtures import Settings

from volcanic import probes


async def _get(path: str) -> httpx.Response:
    from volcanic.asgi import application

    transport = httpx.ASGITransport(application)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        return await client.get(path)


@pytest.fixture(autouse=True)
def production(settings: Settings) -> None:
    """One name of ours, and HTTPS only, as in production."""
    settings.ALLOWED_HOSTS = ["assistant.example.com"]
    settings.SECURE_SSL_REDIRECT = True


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", sorted(probes.PATHS))
async def test_a_probe_comes_by_address(path: str) -> None:
    answer = await _get(path)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_everything_else_needs_a_name_of_ours() -> None:
    assert (await _get("/admin/login/")).status_code == 400


async def test_not_ready_without_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(probes, "_ask_database", away)
    assert (await _get(probes.READY)).status_code == 503
    assert (await _get(probes.ALIVE)).status_code == 200

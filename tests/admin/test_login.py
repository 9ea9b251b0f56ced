"""Login is throttled by name and address together, and pages carry their security headers."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tests.admin.conftest import Rows

LIMIT = 5


def _login(
    client: Client, password: str, *, username: str = "olivia", address: str = "192.0.2.1", forwarded: str = ""
) -> Any:
    return client.post(
        reverse("admin:login"),
        {"username": username, "password": password},
        headers={"X-Forwarded-For": forwarded} if forwarded else {},
        REMOTE_ADDR=address,
    )


@pytest.fixture
def locked_out(client: Client, owner: User) -> Client:
    """A browser that failed five times."""
    for _ in range(LIMIT - 1):
        assert _login(client, "wrong").status_code == 200
    assert _login(client, "wrong").status_code == 429
    return client


def test_the_fifth_failure_locks_out(locked_out: Client) -> None:
    response = _login(locked_out, "olivia-password")
    assert response.status_code == 429
    assert "Too many failed logins" in response.content.decode()


def test_a_forged_address_has_no_effect(locked_out: Client) -> None:
    for forged in ("198.51.100.7", "127.0.0.1, 10.0.0.1", "not-an-address"):
        assert _login(locked_out, "olivia-password", forwarded=forged).status_code == 429


def test_the_owner_gets_in_from_elsewhere(locked_out: Client) -> None:
    assert _login(locked_out, "olivia-password", address="203.0.113.9").status_code == 302


def test_another_name_gets_in_from_there(locked_out: Client, other_owner: User) -> None:
    assert _login(locked_out, "oscar-password", username="oscar").status_code == 302


def test_failures_from_several_forged_addresses_add_up(client: Client, owner: User) -> None:
    answers = [_login(client, "wrong", forwarded=f"198.51.100.{number}").status_code for number in range(LIMIT)]
    assert answers == [200] * (LIMIT - 1) + [429]


def test_a_superuser_lets_a_name_try_again(locked_out: Client, as_superuser: Client) -> None:
    chosen = {"action": "delete_selected", "_selected_action": [1], "post": "yes"}
    listed = as_superuser.get(reverse("admin:axes_accessattempt_changelist"))
    chosen["_selected_action"] = [row.pk for row in listed.context["cl"].result_list]
    assert as_superuser.post(reverse("admin:axes_accessattempt_changelist"), chosen).status_code == 302
    assert _login(locked_out, "olivia-password").status_code == 302


def test_pages_load_nothing_from_elsewhere(as_owner: Client, rows: Rows) -> None:
    response = as_owner.get(reverse("admin:index"))
    policy = response["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "http://" not in policy
    assert "https://" not in policy
    assert response["X-Frame-Options"] == "DENY"

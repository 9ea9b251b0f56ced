"""The screens of identities and refused calls."""

from django.test import Client
from django.urls import reverse

from tests.admin.conftest import Rows
from trust.models import CallerIdentity, RefusedCall

ADD = reverse("admin:trust_calleridentity_add")


def test_an_identity_is_added_once(as_superuser: Client, as_owner: Client, rows: Rows) -> None:
    """By superusers: an owner could claim an agent that calls another workspace."""
    data = {"caller": rows.caller.pk, "issuer": "https://id.example", "agent_id": "agent-9"}
    assert as_owner.post(ADD, data).status_code == 403
    assert as_superuser.post(ADD, data).status_code == 302
    again = as_superuser.post(ADD, data)
    assert again.status_code == 200
    assert "already exists" in again.content.decode()
    assert CallerIdentity.objects.get(agent_id="agent-9").caller == rows.caller


def test_an_owner_takes_an_identity_back(as_owner: Client, as_other: Client, rows: Rows, other_rows: Rows) -> None:
    delete = reverse("admin:trust_calleridentity_delete", args=[rows.identity.pk])
    assert as_other.post(delete, {"post": "yes"}).status_code == 404
    assert as_owner.post(delete, {"post": "yes"}).status_code == 302
    assert not CallerIdentity.objects.filter(pk=rows.identity.pk).exists()


def test_refused_calls_are_listed_newest_first(as_superuser: Client) -> None:
    for source in ("192.0.2.1", "192.0.2.2"):
        RefusedCall.objects.create(source=source, reason="wrong-key", path="/a2a", count=7)
    text = as_superuser.get(reverse("admin:trust_refusedcall_changelist")).content.decode()
    assert 0 < text.index("192.0.2.2") < text.index("192.0.2.1")

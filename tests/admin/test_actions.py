"""Every action of every list does its work, or asks what it needs to know, and breaks nothing."""

from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client, RequestFactory

from tests.admin.conftest import OWNED, Rows, admin_url
from trust.models import RefusedCall

ACTIONS = [
    (model, action)
    for model, screen in admin.site._registry.items()
    if model._meta.app_label != "a2a_client"
    for action in (*(name for name in screen.actions or () if isinstance(name, str)), "delete_selected")
]


def _row(model: type[Any], rows: Rows) -> Any:
    if model in OWNED:
        return rows.row_of(model)
    if model is User:
        return User.objects.create_user("vera")
    if model is AccessAttempt:
        return AccessAttempt.objects.create(username="x", ip_address="192.0.2.1", failures_since_start=1)
    assert model is RefusedCall
    return RefusedCall.objects.create(source="192.0.2.1", reason="wrong-key", path="/a2a")


@pytest.mark.parametrize(("model", "action"), ACTIONS)
def test_every_action_of_every_list(
    model: type[Any], action: str, as_superuser: Client, superuser: User, rows: Rows
) -> None:
    request = RequestFactory().get("/")
    request.user = superuser
    offered = action in admin.site.get_model_admin(model).get_actions(request)
    assert offered or action == "delete_selected"
    chosen = {"action": action, "_selected_action": [_row(model, rows).pk]}
    for answer in ({}, {"answered": "1"}, {"post": "yes"}):
        assert as_superuser.post(admin_url(model, "changelist"), chosen | answer).status_code in {200, 302}

"""Commands say what they can't do, and that they did nothing."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from tests.conftest import Keyed
from trust.models import AuditEntry, Grant, Level
from volcanic.models import Workspace


def _refused(*arguments: str) -> str:
    lines = AuditEntry.objects.count()
    with pytest.raises(CommandError) as caught:
        call_command(*arguments, stdout=io.StringIO())
    assert AuditEntry.objects.count() == lines
    return str(caught.value)


def test_what_is_not_granted_is_not_revoked(friend: Keyed) -> None:
    told = _refused("trust", "friend", "--revoke", "chat", "--revoke", "notify-user", "--level", "learn")
    assert told == "friend is not granted notify-user: there is nothing to revoke."
    assert Grant.objects.filter(caller=friend.caller, skill__slug="chat").exists()
    friend.caller.refresh_from_db()
    assert friend.caller.level == Level.ACT


def test_a_reason_is_for_a_change(friend: Keyed) -> None:
    assert _refused("trust", "friend", "--reason", "Because.") == "--reason goes with --level, --grant or --revoke."


def test_a_caller_is_made_once(friend: Keyed) -> None:
    told = _refused("create_caller", "friend")
    assert told == "There is a caller 'friend' already. A new key for it: manage.py rotate_key friend"


@pytest.mark.django_db
def test_a_draft_is_shown_approved_or_rejected() -> None:
    assert "show|approve|reject" in _refused("draft", "1")


def test_the_first_owner_needs_tables(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection.introspection, "table_names", list)
    assert _refused("bootstrap") == "The database has no tables yet. First: manage.py migrate"

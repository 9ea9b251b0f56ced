"""`manage.py trust`, and who acts in commands."""

import io
import json
import os
import pwd
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.conftest import Keyed
from trust.models import AuditEntry, Caller, Grant, Level
from trust.signals import grant_revoked
from volcanic.acting import current
from volcanic.models import Workspace


def _run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def _json(*arguments: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(_run("trust", *arguments, "--json"))
    return facts


def test_it_shows_a_caller(friend: Keyed) -> None:
    lines = AuditEntry.objects.count()
    text = _run("trust", "friend")
    assert text.startswith("friend in main: act, enabled\ngranted: chat\nfirst seen: never\n")
    assert "caller.created act" in text
    now = timezone.now()
    Caller.objects.filter(pk=friend.caller.pk).update(
        first_seen_at=now, last_interaction_at=now, interaction_count=3, enabled=False
    )
    facts = _json("friend")
    assert list(facts) == [
        "caller",
        "workspace",
        "level",
        "enabled",
        "grants",
        "first_seen",
        "last_interaction",
        "interactions",
        "reviews_waiting",
        "history",
    ]
    assert facts["grants"] == [{"skill": "chat", "level": ""}]
    assert (facts["level"], facts["enabled"], facts["interactions"], facts["reviews_waiting"]) == ("act", False, 3, 0)
    assert facts["first_seen"] == timezone.localtime(now).isoformat(timespec="seconds")
    assert [one["action"] for one in facts["history"]] == ["key.created", "grant.added", "caller.created"]
    assert list(facts["history"][0]) == ["at", "actor", "action", "subject", "reason"]
    assert AuditEntry.objects.count() == lines


def test_it_changes_a_caller_as_the_user_at_the_shell(friend: Keyed) -> None:
    facts = _json(
        *("friend", "--level", "learn", "--grant", "notify-user", "--grant", "query-availability"),
        *("--revoke", "chat", "--reason", "A quiet week."),
    )
    assert facts["level"] == "learn"
    assert [one["skill"] for one in facts["grants"]] == ["notify-user", "query-availability"]
    actor = f"shell {pwd.getpwuid(os.getuid()).pw_name}"
    done = [(one["actor"], one["action"], one["subject"], one["reason"]) for one in facts["history"]]
    assert done[:4] == [
        (actor, "grant.added", "query-availability", "A quiet week."),
        (actor, "grant.added", "notify-user", "A quiet week."),
        (actor, "grant.revoked", "chat", "A quiet week."),
        (actor, "caller.level", "act → learn", "A quiet week."),
    ]
    assert current().name == "system"
    assert "— A quiet week." in _run("trust", "friend")


def test_stop_is_passed_on(friend: Keyed) -> None:
    told: list[bool] = []

    def receive(sender: Any, *, stop: bool, **_: Any) -> None:
        told.append(stop)

    grant_revoked.connect(receive)
    try:
        _run("trust", "friend", "--revoke", "chat", "--stop")
    finally:
        grant_revoked.disconnect(receive)
    assert told == [True]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nobody"],
        ["friend", "--workspace", "nowhere"],
        ["friend", "--level", "boss"],
        ["friend", "--level", "learn", "--grant", "no-such-skill"],
        ["friend", "--level", "learn", "--grant", "notify-user", "--revoke", "no-such-skill"],
        ["friend", "--grant", "chat", "--revoke", "chat"],
        ["friend", "--level", "learn", "--stop"],
    ],
)
def test_a_bad_value_changes_nothing(friend: Keyed, arguments: list[str]) -> None:
    lines = AuditEntry.objects.count()
    with pytest.raises(CommandError):
        _run("trust", *arguments)
    assert Caller.objects.get(pk=friend.caller.pk).level == Level.ACT
    assert [grant.skill.slug for grant in Grant.objects.filter(caller=friend.caller)] == ["chat"]
    assert AuditEntry.objects.count() == lines


def test_a_workspace_must_be_named_where_there_are_two(friend: Keyed, other_workspace: Workspace) -> None:
    with pytest.raises(CommandError, match="main, other"):
        _run("trust", "friend")
    assert _json("friend", "--workspace", "main")["workspace"] == "main"
    with pytest.raises(CommandError, match="no caller"):
        _run("trust", "friend", "--workspace", "other")


def test_other_commands_act_as_the_user_at_the_shell_too(workspace: Workspace) -> None:
    _run("create_caller", "bot", "--grant", "chat")
    _run("rotate_key", "bot")
    actors = set(AuditEntry.objects.filter(caller="bot").values_list("actor", flat=True))
    assert actors == {f"shell {pwd.getpwuid(os.getuid()).pw_name}"}


def test_bootstrap_acts_as_the_user_at_the_shell(db: None) -> None:
    _run("bootstrap")
    actors = set(AuditEntry.objects.values_list("actor", flat=True))
    assert actors == {f"shell {pwd.getpwuid(os.getuid()).pw_name}"}

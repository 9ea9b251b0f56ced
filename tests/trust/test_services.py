"""Callers, keys and grants, in services and on the command line."""

import io
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction

from tests.conftest import Keyed
from trust.keys import key_digest, key_hint
from trust.models import AuditEntry, Caller, CallerKey, Grant, Level, Skill
from trust.selectors import caller_by_key_digest
from trust.services import caller_create, caller_update, grant_add, key_rotate, request_refused
from volcanic.models import Workspace


def _run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_the_built_in_skills_exist_from_the_first_migration(db: None) -> None:
    assert set(Skill.objects.filter(workspace=None).values_list("slug", flat=True)) == {
        "chat",
        "notify-user",
        "query-availability",
    }


def test_create_caller_prints_the_key_and_only_it(workspace: Workspace) -> None:
    printed = _run("create_caller", "travel-bot", "--level", "act", "--grant", "chat", "--note", "trips")
    key = printed.removesuffix("\n")
    assert len(key) > 40
    assert "\n" not in key
    caller = Caller.objects.get(name="travel-bot")
    assert (caller.level, caller.note, caller.workspace) == (Level.ACT, "trips", workspace)
    assert [grant.skill.slug for grant in caller.grants.all()] == ["chat"]
    stored = CallerKey.objects.get(caller=caller)
    assert key not in str(vars(stored))
    assert stored.hint == key[-4:]
    found = caller_by_key_digest(key_digest(key))
    assert found is not None
    assert found.id == caller.id


@pytest.mark.parametrize(
    "arguments",
    [
        ["Bad_Name"],
        ["x" * 41],
        ["a2a"],
        ["friend"],
        ["new", "--grant", "no-such-skill"],
        ["new", "--workspace", "nowhere"],
    ],
)
def test_a_bad_value_leaves_nothing_behind(friend: Keyed, arguments: list[str]) -> None:
    before = Caller.objects.count(), CallerKey.objects.count(), Grant.objects.count()
    with pytest.raises(CommandError):
        _run("create_caller", *arguments)
    assert before == (Caller.objects.count(), CallerKey.objects.count(), Grant.objects.count())


def test_a_workspace_must_be_named_where_there_are_two(workspace: Workspace, other_workspace: Workspace) -> None:
    with pytest.raises(CommandError, match="main, other"):
        _run("create_caller", "bot")
    _run("create_caller", "bot", "--workspace", "other")
    _run("create_caller", "bot", "--workspace", "main")
    assert Caller.objects.filter(name="bot").count() == 2


def test_rotate_key(friend: Keyed) -> None:
    new = _run("rotate_key", "friend", "--grace", "60").strip()
    assert caller_by_key_digest(key_digest(friend.key)) is not None
    assert caller_by_key_digest(key_digest(new)) is not None
    newest = _run("rotate_key", "friend").strip()
    assert caller_by_key_digest(key_digest(friend.key)) is None
    assert caller_by_key_digest(key_digest(new)) is None
    assert caller_by_key_digest(key_digest(newest)) is not None
    with pytest.raises(CommandError):
        _run("rotate_key", "nobody")
    with pytest.raises(CommandError):
        _run("rotate_key", "friend", "--grace", "-1")


def test_a_grace_does_not_lengthen_a_keys_life(friend: Keyed) -> None:
    key_rotate(caller=friend.caller, grace=timedelta(minutes=1))
    end = CallerKey.objects.get(digest=key_digest(friend.key)).expires_at
    key_rotate(caller=friend.caller, grace=timedelta(days=1))
    assert CallerKey.objects.get(digest=key_digest(friend.key)).expires_at == end


def test_one_key_never_matches_two_callers(friend: Keyed, stranger: Keyed) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        CallerKey.objects.create(caller=stranger.caller, digest=key_digest(friend.key))


def test_a_name_is_unique_in_its_workspace_only(friend: Keyed, other_workspace: Workspace) -> None:
    with pytest.raises(ValidationError):
        caller_create(workspace=friend.caller.workspace, name="friend")
    caller_create(workspace=other_workspace, name="friend")


def test_granting_twice_is_one_grant(stranger: Keyed) -> None:
    assert grant_add(caller=stranger.caller, slug="chat") == grant_add(caller=stranger.caller, slug="chat")


@pytest.mark.parametrize(("key", "hint"), [("short", ""), ("elevenchars", ""), ("twelve-chars", "hars")])
def test_only_long_keys_are_hinted_at(key: str, hint: str) -> None:
    assert key_hint(key) == hint


def test_the_owners_change_does_not_undo_what_others_wrote_meanwhile(friend: Keyed) -> None:
    """A form opened before the caller's next task keeps that task's count, and its own fields."""
    stale = Caller.objects.get(pk=friend.caller.pk)
    Caller.objects.filter(pk=stale.pk).update(interaction_count=7, enabled=False)
    caller_update(caller=stale, level=Level.LEARN, note="seen")
    now = Caller.objects.get(pk=stale.pk)
    assert (now.level, now.note, now.interaction_count, now.enabled) == (Level.LEARN, "seen", 7, False)


def test_a_refusal_is_written_down_once_however_often_it_asks(stranger: Keyed) -> None:
    """Once an hour for each skill."""
    asked = [
        request_refused(caller_id=stranger.caller.pk, skill=skill, reason="not granted")
        for skill in ("query-availability", "query-availability", "", "query-availability", "")
    ]
    assert asked == [True, False, True, False, False]
    lines = AuditEntry.objects.filter(action="request.refused").order_by("id")
    assert list(lines.values_list("subject", flat=True)) == ["query-availability", ""]

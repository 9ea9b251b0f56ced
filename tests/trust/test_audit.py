"""The audit: every change to a caller leaves a line with it, and no line ever changes."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import Error, IntegrityError, connection, transaction
from django.utils import timezone

from tests.conftest import Keyed
from trust import services
from trust.audit import audit
from trust.models import AuditEntry, Caller, CallerIdentity, CallerKey, Grant, Level, Review, Skill
from trust.signals import grant_revoked
from volcanic.acting import acting_as
from volcanic.models import Workspace

Line = tuple[str, str, str]  # action, subject, reason


@contextmanager
def audited() -> Iterator[list[Line]]:
    """Has olivia act in request r-1, and gives the lines that came of it, in order; checks who and where."""
    last = AuditEntry.objects.order_by("-id").values_list("id", flat=True).first() or 0
    lines: list[Line] = []
    with acting_as("owner olivia", "r-1"):
        yield lines
    for entry in AuditEntry.objects.filter(id__gt=last).order_by("id"):
        assert (entry.actor, entry.request_id) == ("owner olivia", "r-1")
        assert timezone.now() - entry.at < timedelta(minutes=1)
        lines.append((entry.action, entry.subject, entry.reason))


def _key(caller: Caller) -> CallerKey:
    return CallerKey.objects.filter(caller=caller).latest("id")


def _revoke_key(caller: Caller) -> Any:
    return services.key_revoke(key=_key(caller), reason="leaked")


# What is done, the lines that it leaves (… stands for the caller's last key), and what is left undone the second time.
CHANGES: dict[str, tuple[Callable[[Caller], Any], list[Line]]] = {
    "disable": (
        lambda caller: services.caller_set_enabled(caller=caller, enabled=False, reason="noisy"),
        [("caller.disabled", "", "noisy")],
    ),
    "level": (
        lambda caller: services.caller_set_level(caller=caller, level=Level.LEARN, reason="new here"),
        [("caller.level", "act → learn", "new here")],
    ),
    "update": (
        lambda caller: services.caller_update(caller=caller, level=Level.OBSERVE, note="n", reason="too quick"),
        [("caller.level", "act → observe", "too quick")],
    ),
    "limits": (
        lambda caller: services.caller_set_limits(caller=caller, requests_per_minute=3, max_running_tasks=None),
        [("caller.limits", "requests_per_minute default → 3", "")],
    ),
    "revoke a key": (_revoke_key, [("key.revoked", "…", "leaked")]),
    "grant": (
        lambda caller: services.grant_add(caller=caller, slug="notify-user", reason="useful"),
        [("grant.added", "notify-user", "useful")],
    ),
    "grant at a level": (
        lambda caller: services.grant_add(caller=caller, slug="notify-user", level=Level.ACT, reason="trusted"),
        [("grant.added", "notify-user (act)", "trusted")],
    ),
    "level of a grant": (
        lambda caller: services.grant_add(caller=caller, slug="chat", level=Level.LEARN, reason="less"),
        [("grant.level", "chat: own → learn", "less")],
    ),
    "revoke": (
        lambda caller: services.grant_revoke(caller=caller, slug="chat", reason="misused"),
        [("grant.revoked", "chat", "misused")],
    ),
}
ALWAYS: dict[str, tuple[Callable[[Caller], Any], list[Line]]] = {
    "add a key": (lambda caller: services.key_add(caller=caller), [("key.created", "…", "")]),
    "rotate later": (
        lambda caller: services.key_rotate(caller=caller, grace=timedelta(hours=1)),
        [("key.rotated", "…, the others end in 1:00:00", "")],
    ),
    "webhook secret": (
        lambda caller: services.webhook_secret_rotate(caller=caller),
        [("webhook_secret.created", "", "")],
    ),
}


def _told(lines: list[Line], caller: Caller) -> list[Line]:
    return [(action, subject.replace("…", f"…{_key(caller).hint}"), reason) for action, subject, reason in lines]


@pytest.mark.parametrize("name", [*CHANGES, *ALWAYS])
def test_every_change_leaves_a_line(friend: Keyed, name: str) -> None:
    change, expected = (CHANGES | ALWAYS)[name]
    with audited() as lines:
        change(friend.caller)
    assert lines == _told(expected, friend.caller)
    entry = AuditEntry.objects.latest("id")
    assert (entry.caller_id, entry.caller, entry.workspace) == (friend.caller.pk, "friend", friend.caller.workspace)


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_nothing_leaves_none(friend: Keyed, name: str) -> None:
    change, _ = CHANGES[name]
    change(friend.caller)
    with audited() as lines:
        assert change(friend.caller) in (False, None) or name.startswith(("grant", "level of"))
    assert lines == []


@pytest.mark.parametrize("name", [*CHANGES, *ALWAYS])
def test_what_is_rolled_back_leaves_none(friend: Keyed, name: str) -> None:
    with audited() as lines, transaction.atomic():
        (CHANGES | ALWAYS)[name][0](friend.caller)
        transaction.set_rollback(True)
    assert lines == []


def test_a_new_callers_lines(workspace: Workspace) -> None:
    with audited() as lines:
        _, key = services.caller_create(workspace=workspace, name="bot", level=Level.ACT, skills=["chat"])
    assert lines == [
        ("caller.created", "act", ""),
        ("grant.added", "chat", ""),
        ("key.created", f"…{key[-4:]}", ""),
    ]
    assert not [one for one in AuditEntry.objects.all() if key in str(vars(one))]
    with audited() as lines, pytest.raises(ValidationError):
        services.caller_create(workspace=workspace, name="other", skills=["no-such-skill"])
    assert lines == []


def test_lines_of_identities(friend: Keyed, stranger: Keyed) -> None:
    with audited() as lines:
        identity = services.identity_add(caller=friend.caller, issuer="https://id.example", agent_id="a-1")
        with pytest.raises(IntegrityError), transaction.atomic():
            services.identity_add(caller=stranger.caller, issuer="https://id.example", agent_id="a-1")
        stale = CallerIdentity.objects.get(pk=identity.pk)
        assert services.identity_remove(identity=identity)
        assert not services.identity_remove(identity=stale)
    told = "a-1 of https://id.example"
    assert lines == [("identity.added", told, ""), ("identity.removed", told, "")]


def test_an_admitted_callers_lines(workspace: Workspace) -> None:
    with audited() as lines:
        services.identified_caller_create(workspace=workspace, name="told", issuer="x", agent_id="7")
    assert lines == [("caller.created", "observe", "Admitted by the word of x."), ("identity.added", "7 of x", "")]


def test_rotating_at_once_tells_which_keys_ended(friend: Keyed) -> None:
    with audited() as lines:
        key = services.key_rotate(caller=friend.caller)
    assert lines == [("key.revoked", f"…{friend.key[-4:]}", ""), ("key.rotated", f"…{key[-4:]}", "")]


def test_a_grants_level_is_left_set_and_taken_back(friend: Keyed) -> None:
    level: Level | None = Level.PROPOSE
    assert services.grant_add(caller=friend.caller, slug="chat", level=level).level == "propose"
    assert services.grant_add(caller=friend.caller, slug="chat").level == "propose"
    with audited() as lines:
        assert services.grant_add(caller=friend.caller, slug="chat", level="").level == ""
    assert lines == [("grant.level", "chat: propose → own", "")]
    assert Grant.objects.get(caller=friend.caller).level == ""
    services.grant_add(caller=friend.caller, slug="chat", level=Level.ACT)
    with audited() as lines:
        services.grant_revoke(caller=friend.caller, slug="chat")
    assert lines == [("grant.revoked", "chat (act)", "")]


def test_a_stale_row_undoes_nobodys_change(friend: Keyed) -> None:
    stale = Caller.objects.get(pk=friend.caller.pk)
    services.caller_set_level(caller=friend.caller, level=Level.LEARN)
    services.caller_set_limits(caller=friend.caller, max_running_tasks=2)
    services.webhook_secret_rotate(caller=stale)
    services.caller_set_limits(caller=stale, requests_per_minute=9)
    with audited() as lines:
        assert not services.caller_set_level(caller=stale, level=Level.LEARN)
    now = Caller.objects.get(pk=stale.pk)
    assert (now.level, now.max_running_tasks, now.requests_per_minute) == (Level.LEARN, 2, 9)
    assert now.webhook_secret == stale.webhook_secret is not None
    assert lines == []


@pytest.fixture
def revocations() -> Iterator[list[dict[str, Any]]]:
    """What `grant_revoked` told."""
    told: list[dict[str, Any]] = []

    def receive(sender: type[Grant], *, caller_id: int, skill: str, stop: bool, **_: Any) -> None:
        gone = not Grant.objects.filter(caller_id=caller_id, skill__slug=skill).exists()
        told.append({"caller_id": caller_id, "skill": skill, "stop": stop, "gone": gone})
        if skill == "notify-user":
            raise InterruptedError

    grant_revoked.connect(receive)
    yield told
    grant_revoked.disconnect(receive)


def test_a_revoked_grant_is_told_in_the_same_transaction(friend: Keyed, revocations: list[dict[str, Any]]) -> None:
    caller = friend.caller
    assert services.grant_revoke(caller=caller, slug="chat", stop=True)
    assert not services.grant_revoke(caller=caller, slug="chat", stop=True)
    assert revocations == [{"caller_id": caller.pk, "skill": "chat", "stop": True, "gone": True}]
    services.grant_add(caller=caller, slug="notify-user")
    with audited() as lines, pytest.raises(InterruptedError):
        services.grant_revoke(caller=caller, slug="notify-user")
    assert lines == []
    assert Grant.objects.filter(caller=caller).exists()


def test_a_disabled_skills_grant_can_be_revoked(friend: Keyed) -> None:
    skill = Skill.objects.create(workspace=friend.caller.workspace, slug="old", name="Old", description="x")
    services.grant_add(caller=friend.caller, slug="old")
    Skill.objects.filter(pk=skill.pk).update(enabled=False)
    assert services.grant_revoke(caller=friend.caller, slug="old")


def _review(caller: Caller, key: CallerKey | None = None) -> Review:
    return Review.objects.create(
        caller=caller,
        task=uuid.uuid4(),
        keys=[] if key is None else [key.pk],
        skill="chat",
        level=Level.OBSERVE,
        request="x",
        digest="d",
        request_digest=str(uuid.uuid4()),
        expires_at=timezone.now() + timedelta(days=1),
    )


def _states(*reviews: Review) -> list[str]:
    return [Review.objects.get(pk=review.pk).state for review in reviews]


def test_what_waits_ends_with_the_key_it_came_with(friend: Keyed) -> None:
    first, second = _review(friend.caller, _key(friend.caller)), _review(friend.caller)
    new = services.key_add(caller=friend.caller)
    services.key_rotate(caller=friend.caller, grace=timedelta(hours=1))
    assert _states(first, second) == ["pending", "pending"]
    services.key_revoke(key=CallerKey.objects.get(hint=friend.key[-4:]))
    assert _states(first, second) == ["void", "pending"]
    third = _review(friend.caller, CallerKey.objects.get(hint=new[-4:]))
    services.key_rotate(caller=friend.caller)
    assert _states(third, second) == ["void", "pending"]
    assert new[-4:] in Review.objects.get(pk=third.pk).note


def test_what_waits_ends_with_its_caller(friend: Keyed, stranger: Keyed) -> None:
    own, others = _review(friend.caller), _review(stranger.caller)
    services.caller_set_enabled(caller=friend.caller, enabled=True)
    assert _states(own, others) == ["pending", "pending"]
    services.caller_set_enabled(caller=friend.caller, enabled=False)
    assert _states(own, others) == ["void", "pending"]


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: AuditEntry.objects.filter(pk=entry.pk).update(reason="another"),
        lambda entry: AuditEntry.objects.filter(pk=entry.pk).delete(),
        lambda entry: entry.save(),
        lambda entry: entry.delete(),
        lambda entry: connection.cursor().execute("UPDATE trust_auditentry SET actor = 'nobody'"),
        lambda entry: connection.cursor().execute("DELETE FROM trust_auditentry WHERE id = %s", [entry.pk]),
        lambda entry: connection.cursor().execute("TRUNCATE trust_auditentry"),
    ],
    ids=["update", "delete", "save", "delete one", "raw update", "raw delete", "truncate"],
)
def test_the_database_lets_no_line_change(friend: Keyed, change: Callable[[AuditEntry], object]) -> None:
    audit("test.done", caller=friend.caller, reason="as it was")
    entry = AuditEntry.objects.latest("id")
    before = list(AuditEntry.objects.order_by("id").values())
    with pytest.raises(Error, match="append-only"), transaction.atomic():
        change(entry)
    assert list(AuditEntry.objects.order_by("id").values()) == before


def test_lines_outlive_what_they_are_about(friend: Keyed) -> None:
    workspace, caller = friend.caller.workspace, friend.caller
    before = list(AuditEntry.objects.order_by("id").values())
    assert before
    caller.delete()
    assert list(AuditEntry.objects.order_by("id").values()) == before
    workspace.delete()
    assert list(AuditEntry.objects.order_by("id").values()) == before
    connection.check_constraints()


def test_a_line_holds_what_people_write(friend: Keyed) -> None:
    audit("test.done", caller=friend.caller, subject="s" * 300, reason="nul \x00 and " + "r" * 5000)
    entry = AuditEntry.objects.latest("id")
    assert len(entry.subject) == 200
    assert entry.reason == "nul � and " + "r" * 5000
    assert entry.actor == "system"

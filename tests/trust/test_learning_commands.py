"""`manage.py learn`, `manage.py draft` and `manage.py unlike`."""

import io
import json
import os
import pwd
import uuid
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from a2a_server.models import Task, TaskState
from tests.admin.conftest import make_draft, make_review, make_task, wire_message
from tests.conftest import Keyed
from trust.learning.services import draft_update
from trust.models import AuditEntry, Caller, Grant, Level, Observation, SkillDraft
from trust.services import caller_create, caller_set_enabled
from volcanic.models import Session, Workspace

KEYS = ["id", "caller", "slug", "name", "decision", "evidence", "source", "preview"]
DAYS = ("Monday", "Tuesday", "Friday")


@pytest.fixture
def learner(stranger: Keyed) -> Caller:
    """A caller at Learn, three of whose requests were approved: enough for a draft."""
    Caller.objects.filter(pk=stranger.caller.pk).update(level=Level.LEARN)
    _observe(stranger.caller)
    return stranger.caller


@pytest.fixture
def draft(learner: Caller) -> SkillDraft:
    """The draft that was learned of it."""
    _run("learn")
    return SkillDraft.objects.get(caller=learner)


def _observe(caller: Caller) -> None:
    for day in DAYS:
        Observation.objects.create(
            caller=caller,
            task=uuid.uuid4(),
            skill="chat",
            request=f"Please note that the parcel of {day} has come.",
            decision="approve",
            edits="One line each." if day == "Friday" else "",
        )


def _run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def _json(*arguments: str) -> Any:
    return json.loads(_run(*arguments, "--json"))


def _me() -> str:
    return f"shell {pwd.getpwuid(os.getuid()).pw_name}"


def test_it_learns_and_lists_what_is_proposed(learner: Caller) -> None:
    text = _run("learn")
    draft = SkillDraft.objects.get(caller=learner)
    assert text.startswith(f"{draft.pk}  stranger: Like “Please note")
    assert f"({draft.slug})\n    3 requests, decision approve, written by rule\n    tried: —" in text
    (one,) = _json("learn")
    assert list(one) == KEYS
    assert (one["id"], one["caller"], one["slug"], one["evidence"]) == (draft.pk, "stranger", draft.slug, 3)
    assert (one["decision"], one["source"], one["preview"]) == ("approve", "rule", "")
    assert SkillDraft.objects.count() == 1
    assert AuditEntry.objects.get(action="draft.proposed").actor == _me()
    learner.refresh_from_db()
    assert learner.level == Level.PROPOSE


def test_nothing_is_proposed(stranger: Keyed) -> None:
    assert _run("learn") == "Nothing is proposed.\n"
    assert _json("learn", "stranger") == []


def test_one_caller_or_all(learner: Caller, workspace: Workspace) -> None:
    second, _ = caller_create(workspace=workspace, name="second", level=Level.LEARN)
    _observe(second)
    assert [one["caller"] for one in _json("learn", "second")] == ["second"]
    assert not SkillDraft.objects.filter(caller=learner).exists()
    caller_set_enabled(caller=learner, enabled=False)
    assert [one["caller"] for one in _json("learn")] == ["second"]
    assert not SkillDraft.objects.filter(caller=learner).exists()
    caller_set_enabled(caller=learner, enabled=True)
    assert [one["caller"] for one in _json("learn")] == ["second", "stranger"]


def test_each_workspace_has_its_own(learner: Caller, other_workspace: Workspace) -> None:
    with pytest.raises(CommandError, match="Name a workspace with --workspace"):
        _run("learn")
    assert _json("learn", "--workspace", "other") == []
    with pytest.raises(CommandError, match="There is no caller 'stranger' in this workspace"):
        _run("learn", "stranger", "--workspace", "other")
    assert len(_json("learn", "--workspace", "main")) == 1


def test_a_draft_is_shown(draft: SkillDraft) -> None:
    ident = str(draft.pk)
    text = _run("draft", ident, "show")
    for part in (
        f"({draft.slug}), for stranger in main: open",
        "Your owner told you: One line each.",
        "tools: none",
        "  - Please note that the parcel of Friday has come.",
        "learned from 3 requests, decision approve:",
        "Please note that the parcel of Friday has come. → One line each.",
        "not tried yet",
    ):
        assert part in text, part
    facts = _json("draft", ident, "show")
    assert [one["id"] for one in facts["evidence"]] == draft.evidence
    assert (facts["state"], facts["version"], facts["previewed"], facts["skill"]) == ("open", 1, None, None)
    SkillDraft.objects.filter(pk=draft.pk).update(previewed_at=timezone.now(), preview="I would\nwrite it.", note="x")
    text = _run("draft", ident, "show")
    assert "nothing was sent:\n    I would\n    write it." in text
    assert "note: x\n" in text
    SkillDraft.objects.filter(pk=draft.pk).update(preview="", preview_problem="Too slow.")
    assert "    Too slow." in _run("draft", ident, "show")
    SkillDraft.objects.filter(pk=draft.pk).update(preview_problem="")
    assert "    It had nothing to say." in _run("draft", ident, "show")


def test_a_callers_words_keep_to_their_line(learner: Caller) -> None:
    words = "a\n99  friend: approved\x1b[2J\u202e"
    observation = Observation.objects.create(
        caller=learner, task=uuid.uuid4(), skill="chat", request=words, decision="approve"
    )
    draft = make_draft(
        learner, [observation], text=words, name=words, instructions=words, preview=words, previewed_at=timezone.now()
    )
    for text in (_run("learn"), _run("draft", str(draft.pk), "show")):
        assert not {"\x1b", "\u202e"} & set(text)
        assert not any(line.startswith("99") for line in text.splitlines())


def test_a_draft_is_approved(draft: SkillDraft) -> None:
    ident = str(draft.pk)
    assert _run("draft", ident, "approve") == f"Approved: stranger may use {draft.slug} from now on.\n"
    grant = Grant.objects.get(caller=draft.caller)
    assert (grant.skill.slug, grant.level) == (draft.slug, Level.ACT)
    draft.refresh_from_db()
    assert (draft.state, draft.decided_by) == ("approved", _me())
    facts = _json("draft", ident, "show")
    assert (facts["state"], facts["decided_by"], facts["skill"]) == ("approved", _me(), draft.slug)
    assert f"skill: {draft.slug}\n" in _run("draft", ident, "show")
    for do in ("approve", "reject"):
        with pytest.raises(CommandError, match="The draft was decided before: approved"):
            _run("draft", ident, do)
    assert _run("learn") == "Nothing is proposed.\n"


def test_a_draft_is_rejected(draft: SkillDraft) -> None:
    facts = _json("draft", str(draft.pk), "reject", "--text", "I want to see these.")
    assert (facts["state"], facts["decision_text"]) == ("rejected", "I want to see these.")
    assert not Grant.objects.exists()
    assert _run("learn") == "Nothing is proposed.\n"
    second = make_draft(draft.caller)
    assert _run("draft", str(second.pk), "reject") == "Rejected: such requests of stranger are not proposed again.\n"


def test_a_decision_is_about_the_version_that_was_shown(draft: SkillDraft) -> None:
    ident = str(draft.pk)
    assert f"({draft.slug}), for stranger in main: open, version 1\n" in _run("draft", ident, "show")
    assert _json("draft", ident, "show")["version"] == 1
    draft_update(draft=draft, version=1, instructions="Send it to Eve.")
    for do in ("approve", "reject"):
        with pytest.raises(CommandError, match="The draft was edited meanwhile"):
            _run("draft", ident, do, "--version", "1")
    with pytest.raises(CommandError, match="--version goes with approve and reject"):
        _run("draft", ident, "show", "--version", "1")
    assert not Grant.objects.exists()
    assert _run("draft", ident, "approve", "--version", "2").startswith("Approved: ")


def test_what_a_draft_covers_is_told(draft: SkillDraft) -> None:
    ident = str(draft.pk)
    told = "Covered are requests that say the same as an example, word for word. Only the time may differ: "
    told += "of any weekday, “tomorrow” and the like. Other requests still come to you."
    assert f"\n{told}\nlearned from" in _run("draft", ident, "show")
    facts = _json("draft", ident, "show")
    assert (facts["covers"], facts["fixed"]) == (told, [])
    orders = [f"Refund 50 EUR to Anna for order {number}" for number in (4711, 4715)]
    draft_update(draft=draft, version=1, examples=orders)
    text = _run("draft", ident, "show")
    assert "\nCovered are only requests that say the same as an example, word for word. Other requests" in text
    assert "\nfixed: 4711, 4715\n" in text


def test_what_is_refused(draft: SkillDraft) -> None:
    ident = str(draft.pk)
    with pytest.raises(CommandError, match="There is no draft 0"):
        _run("draft", "0", "show")
    with pytest.raises(CommandError, match="invalid choice"):
        _run("draft", ident, "burn")
    with pytest.raises(CommandError, match="--text goes with reject"):
        _run("draft", ident, "approve", "--text", "x")
    SkillDraft.objects.filter(pk=draft.pk).update(tools=["no_such_tool"])
    with pytest.raises(CommandError, match="There is no tool no_such_tool"):
        _run("draft", ident, "approve")
    draft.refresh_from_db()
    assert draft.state == "open"
    draft_update(draft=draft, version=draft.version, tools=[])
    _run("draft", ident, "approve")


def _alone(caller: Caller, skill: str) -> Task:
    session = Session.objects.create(workspace=caller.workspace, kind="inbound", scope=str(uuid.uuid4()))
    return make_task(
        caller=caller,
        session=session,
        context_id=session.scope,
        state=TaskState.COMPLETED,
        skill=skill,
        attempt=1,
        history=[wire_message("ROLE_USER", "Please note that the parcel of Sunday has come.")],
    )


def test_not_like_this(draft: SkillDraft) -> None:
    _run("draft", str(draft.pk), "approve")
    task = _alone(draft.caller, draft.slug)
    told = _run("unlike", str(task.pk), "--text", "Append, don't replace.")
    assert told == f"{draft.slug} is no longer granted to stranger.\n"
    assert not Grant.objects.filter(caller=draft.caller).exists()
    draft.refresh_from_db()
    assert draft.state == "open"
    assert "Append, don't replace." in draft.instructions
    assert Observation.objects.get(decision="unlike").request == "Please note that the parcel of Sunday has come."
    assert AuditEntry.objects.get(action="grant.revoked").actor == _me()
    assert len(_json("learn")) == 1
    with pytest.raises(CommandError, match="The task ran on no grant"):
        _run("unlike", str(task.pk))


def test_what_was_not_done_on_a_grant(friend: Keyed) -> None:
    task = _alone(friend.caller, "")
    make_review(friend.caller, task)
    with pytest.raises(CommandError, match="The task ran on no grant"):
        _run("unlike", str(task.pk))
    with pytest.raises(CommandError, match="There is no task"):
        _run("unlike", str(uuid.uuid4()))
    with pytest.raises(CommandError, match="invalid UUID value"):
        _run("unlike", "x")
    assert Grant.objects.filter(caller=friend.caller).exists()

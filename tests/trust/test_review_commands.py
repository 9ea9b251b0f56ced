"""`manage.py reviews` and `manage.py review`."""

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
from tests.admin.conftest import make_review
from tests.conftest import Keyed
from trust.models import AuditEntry, Review
from trust.services import caller_create, caller_set_enabled, review_add
from volcanic.models import Session, Workspace

KEYS = [
    "id",
    "task",
    "caller",
    "level",
    "skill",
    "state",
    "summary",
    "suggestion",
    "request",
    "created",
    "expires",
    "digest",
    "draft",
]


@pytest.fixture
def task(stranger: Keyed) -> Task:
    """A task that waits for the owner."""
    return _task(stranger)


@pytest.fixture
def review(stranger: Keyed, task: Task) -> Review:
    """The review of it."""
    return make_review(stranger.caller, task, text="book the train")


def _task(keyed: Keyed) -> Task:
    session = Session.objects.create(workspace=keyed.caller.workspace, kind="inbound", scope=str(uuid.uuid4()))
    return Task.objects.create(
        caller=keyed.caller, session=session, context_id=session.scope, state=TaskState.AUTH_REQUIRED, seq=1, history=[]
    )


def _run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def _json(*arguments: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(_run("reviews", "--json", *arguments))
    return listed


def test_what_waits_is_listed(task: Task, review: Review) -> None:
    text = _run("reviews")
    assert text.startswith(f"{review.pk}  stranger (observe) asks for chat: pending\n")
    for part in ("Wants this done: book the train", "suggested: approve: it looks harmless.", str(task.pk)):
        assert part in text
    (one,) = _json()
    assert list(one) == KEYS
    assert (one["id"], one["task"], one["digest"]) == (review.pk, str(task.pk), review.digest)
    assert (one["caller"], one["level"], one["skill"], one["state"]) == ("stranger", "observe", "chat", "pending")
    assert one["expires"] == timezone.localtime(review.expires_at).isoformat(timespec="seconds")


def test_what_is_decided_is_listed_when_asked_for(review: Review) -> None:
    _run("review", str(review.pk), "ask", "--text", "When?")
    assert _run("reviews") == "Nothing waits.\n"
    assert _json() == []
    assert [one["state"] for one in _json("--all")] == ["asked"]


def test_a_callers_words_keep_to_their_line(stranger: Keyed, task: Task) -> None:
    make_review(stranger.caller, task, summary="a\n99  friend (act)\x1b[2J\u202e", suggestion="b\r\nc")
    text = _run("reviews")
    assert len(text.splitlines()) == 4
    assert not {"\x1b", "\r", "\u202e"} & set(text)


def test_each_workspace_has_its_own(review: Review, other_workspace: Workspace) -> None:
    with pytest.raises(CommandError, match="Name a workspace with --workspace"):
        _run("reviews")
    assert len(_json("--workspace", "main")) == 1
    assert _json("--workspace", "other") == []


@pytest.mark.parametrize(
    ("decision", "text", "state", "told"),
    [
        ("approve", "", TaskState.SUBMITTED, "Approved: it is being done."),
        ("grant", "", TaskState.SUBMITTED, "Approved: it is being done, and stranger may use chat from now on."),
        ("reply", "Done.", TaskState.COMPLETED, "Your reply went to stranger."),
        ("ask", "When?", TaskState.INPUT_REQUIRED, "Your question went to stranger."),
        ("decline", "", TaskState.REJECTED, "Declined: stranger was told."),
    ],
)
def test_a_decision(decision: str, text: str, state: TaskState, told: str, task: Task, review: Review) -> None:
    assert _run("review", str(review.pk), decision, "--text", text) == f"{told} (task {task.pk})\n"
    task.refresh_from_db()
    assert task.state == state
    review.refresh_from_db()
    me = f"shell {pwd.getpwuid(os.getuid()).pw_name}"
    assert (review.decided_by, review.decision_text) == (me, text)
    assert AuditEntry.objects.get(action=f"review.{decision}").actor == me


def test_what_is_refused(stranger: Keyed, task: Task, review: Review) -> None:
    ident = str(review.pk)
    with pytest.raises(CommandError, match="Write the reply"):
        _run("review", ident, "reply")
    with pytest.raises(CommandError, match="There is no review 0"):
        _run("review", "0", "approve")
    for decision in ("burn", "unlike"):  # the latter is said of what was done
        with pytest.raises(CommandError, match="invalid choice"):
            _run("review", ident, decision)
    with pytest.raises(CommandError, match="has changed since"):
        _run("review", ident, "approve", "--digest", "another")
    message = {"messageId": "2", "role": "ROLE_USER", "parts": [{"text": "and more"}]}
    assert review_add(task=task.pk, caller_id=stranger.caller.pk, message=message, text="and more")
    with pytest.raises(CommandError, match="has changed since"):
        _run("review", ident, "approve", "--digest", review.digest)
    _run("review", ident, "decline")
    with pytest.raises(CommandError, match="It was decided before: declined by shell"):
        _run("review", ident, "approve")


def test_what_is_void(workspace: Workspace) -> None:
    keyed = Keyed(*caller_create(workspace=workspace, name="gone"))
    review = make_review(keyed.caller, _task(keyed))
    caller_set_enabled(caller=keyed.caller, enabled=False)
    with pytest.raises(CommandError, match="disabled"):
        _run("review", str(review.pk), "approve")

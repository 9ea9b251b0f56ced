"""Trying a draft: the assistant looks, and does nothing. That a worker is asked for it is in the story of learning."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.conftest import Keyed
from tests.trust.learned import drafted
from trust.learning.preview import MAX_PREVIEW, draft_preview
from trust.learning.services import draft_approve, draft_update
from trust.models import SkillDraft
from volcanic.models import Notification
from volcanic.runtime import current, tools

LOOKING = ["list_files", "read_file", "recall"]
CHANGING = ["bash", "edit_file", "notify_owner", "remember", "request_input", "send", "write_file"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker_is_away")]


@pytest.fixture(autouse=True)
def _scripted(settings: Settings) -> Iterator[None]:
    """The scripted model: what it is asked, it does."""
    settings.MODEL = "faux"
    current.runner.cache_clear()
    yield
    current.runner.cache_clear()


@pytest.fixture
def draft(stranger: Keyed) -> SkillDraft:
    draft = drafted(stranger.caller)
    folder = draft.caller.workspace.path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notes.txt").write_text("milk")
    SkillDraft.objects.update(tools=sorted([*LOOKING, *CHANGING]), previewed_at=None)
    return draft


def asked(draft: SkillDraft, *script: str) -> SkillDraft:
    """Has the last request be a script, tries the draft, and returns it."""
    SkillDraft.objects.filter(pk=draft.pk).update(examples=["\n".join(script), "an earlier one"])
    draft_preview(draft_id=draft.pk)
    return SkillDraft.objects.get(pk=draft.pk)


def files(draft: SkillDraft) -> dict[str, str]:
    root: Path = draft.caller.workspace.path
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


CALLS: dict[str, dict[str, Any]] = {
    "write_file": {"path": "notes.txt", "content": "gone"},
    "edit_file": {"path": "notes.txt", "old": "milk", "new": "gone"},
    "send": {"path": "notes.txt"},
    "remember": {"text": "Obey."},
    "notify_owner": {"text": "Look!"},
    "bash": {"command": "echo gone > notes.txt"},
    "request_input": {"question": "And you?"},
}


def test_what_changes_something_is_named(draft: SkillDraft) -> None:
    """A new tool of either kind is to be added above."""
    assert set(CALLS) == set(CHANGING)
    assert all(tools.touched(name) for name in CHANGING if name != "request_input" and name in tools.known())
    assert not any(tools.touched(name) for name in LOOKING)


@pytest.mark.parametrize("name", CHANGING)
def test_nothing_is_written_or_sent(draft: SkillDraft, name: str) -> None:
    told = Notification.objects.count()
    tried = asked(draft, f"tool: {name} {json.dumps(CALLS[name])}", "and done")
    assert f"Unknown tool name: '{name}'" in tried.preview
    assert tried.preview.endswith("and done")
    assert (tried.preview_problem, tried.previewed_at is not None) == ("", True)
    assert files(draft) == {"notes.txt": "milk"}
    assert Notification.objects.count() == told


def test_it_looks(draft: SkillDraft) -> None:
    tried = asked(draft, 'tool: read_file {"path": "notes.txt"}', "is in it")
    assert "milk" in tried.preview
    assert "is in it" in tried.preview
    assert (tried.state, tried.version, draft.caller.grants.count()) == ("open", 1, 0)


def test_a_tool_that_is_not_the_drafts_is_not_given(draft: SkillDraft) -> None:
    SkillDraft.objects.update(tools=["recall"])
    assert "Unknown tool name: 'read_file'" in asked(draft, 'tool: read_file {"path": "notes.txt"}').preview


def test_a_failing_model_leaves_its_problem(draft: SkillDraft) -> None:
    tried = asked(draft, "fail: overloaded, api_key=abcd1234efgh")
    assert (tried.preview, tried.previewed_at is not None) == ("", True)
    assert "The model provider answered with an error (500): overloaded" in tried.preview_problem
    assert "abcd1234efgh" not in tried.preview_problem


def test_one_that_takes_too_long_is_given_up(draft: SkillDraft, settings: Settings) -> None:
    settings.TRIAGE_TIMEOUT_SECONDS = 0.1
    assert "It took longer than 0.1 seconds." in asked(draft, "sleep: 30").preview_problem


def test_a_runner_that_breaks_is_told_of_without_its_words(
    draft: SkillDraft, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.MODEL = "no-such-provider:x"
    current.runner.cache_clear()  # another test may have had one made
    tried = asked(draft, "Hello")
    current.runner.cache_clear()
    assert (tried.preview, tried.preview_problem) == ("", "It could not be tried.")
    assert "could not be tried" in caplog.text


def test_a_version_that_was_edited_meanwhile_is_not_overwritten(draft: SkillDraft, settings: Settings) -> None:
    """The owner edits while the assistant reads: the answer is to what is no more."""

    async def edit(context: tools.ToolContext) -> str:
        """Edits, as the owner in their browser."""
        await asyncio.to_thread(_edit, draft)
        return "edited"

    tools.register("slow_look", edit)
    try:
        SkillDraft.objects.update(tools=["slow_look"])
        now = asked(draft, "tool: slow_look {}", "an answer")
    finally:
        tools.unregister("slow_look")
    assert (now.version, now.name, now.preview, now.previewed_at) == (2, "Edited", "", None)


def _edit(draft: SkillDraft) -> None:
    draft_update(draft=SkillDraft.objects.get(pk=draft.pk), version=1, name="Edited")
    connection.close()


def test_what_was_tried_or_decided_is_left(draft: SkillDraft) -> None:
    draft_preview(draft_id=10**9)
    at = timezone.now()
    SkillDraft.objects.update(previewed_at=at, preview="kept")
    assert (asked(draft, "Hello").preview, SkillDraft.objects.get().previewed_at) == ("kept", at)
    draft_approve(draft=draft, version=1)
    SkillDraft.objects.update(previewed_at=None, preview="")
    assert asked(draft, "Hello").previewed_at is None


def test_a_long_answer_is_cut(draft: SkillDraft) -> None:
    assert len(asked(draft, "x" * (MAX_PREVIEW + 10)).preview) == MAX_PREVIEW

"""Turns of a run: the prompt, the tools and the deadline of a full turn and of a triage turn."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from a2a_server.files import files_store
from a2a_server.selectors import references_of
from a2a_server.services import Run
from trust.models import Review, Skill
from trust.services import ASSISTANT, CALLER, OWNER
from volcanic.a2a_json import message_text
from volcanic.origins import caller_scope, task_origin
from volcanic.runtime import tools
from volcanic.runtime.base import Inbound, PastTurn, Turn
from volcanic.runtime.prompt import Approval, frame_inbound, frame_triage
from volcanic.selectors import session_history
from volcanic.toolbox.notify import NOTIFY_OWNER

# The tools of a triage: they read memory and skills and keep notes. No tool has an effect outside of the assistant.
TRIAGE_TOOLS = frozenset({"recall", "list_skills", "read_working_memory", "write_working_memory"})


def full_turn(run: Run, skill: Skill | None, approved: Review | None) -> Turn:
    """Returns the turn that does what the message asks. Writes the message's files into the inbox first.

    `skill` is None for a plain request. `approved` is the review in which the owner approved this message and the
    messages before it, or None. A learned skill without an approval sees the message alone, without history and
    references, since the skill's examples cover nothing else. Raises TurnFailedError for files that can't be stored.
    """
    inbound = Inbound(caller=run.caller_name, scope=caller_scope(run.caller_id), notifier=run.notify_owner)
    workspace = _workspace(run)
    allowed = tools.allowed(inbound)
    if skill is not None and skill.tools is not None:
        allowed &= frozenset(skill.tools)
    alone = skill is not None and skill.by_example and approved is None
    origin = task_origin(run.task_id)
    history, answers = ([], None) if alone else _history(run, origin)
    messages = [run.message] if approved is None else _approved_messages(approved, goes_on=answers is not None)
    text = "\n\n".join(message_text(message) for message in messages)
    files = files_store(task_id=run.task_id, workspace=workspace, caller=run.caller_name) if run.has_files else []
    prompt = frame_inbound(
        caller=run.caller_name,
        text=text,
        accepted_output_modes=() if alone else run.accepted_output_modes,
        references=references_of(messages, run.caller_id) if approved is None else approved.references,
        notify_owner=NOTIFY_OWNER in allowed,
        files=[f"{file.path} ({file.size} bytes, {file.media_type})" for file in files],
        skill=_told(skill) if skill else "",
        approval=_approval(approved) if approved else None,
    )
    return Turn(
        session_id=run.session_id,
        origin=origin,
        workspace=workspace,
        prompt=prompt,
        text=text,
        tools=allowed,
        deadline=timezone.now() + timedelta(seconds=settings.TURN_TIMEOUT_SECONDS),
        history=history,
        answers=answers,
        message=run.message,
        workspace_id=run.workspace_id,
        inbound=inbound,
        instructions=skill.instructions if skill else "",
    )


def triage_turn(run: Run, messages: Sequence[dict[str, Any]], files: Sequence[str]) -> Turn:
    """Returns the read-only turn that prepares the owner's decision on a request, with the history of its session.

    `messages` are the caller's messages, and `files` are lines of `files.file_line`.
    """
    origin = task_origin(run.task_id)
    inbound = Inbound(caller=run.caller_name, scope=caller_scope(run.caller_id), notes=notes_of_task(run))
    text = "\n\n".join(message_text(message) for message in messages)
    return Turn(
        session_id=run.session_id,
        origin=origin,
        workspace=_workspace(run),
        prompt=frame_triage(
            caller=run.caller_name, text=text, references=references_of(messages, run.caller_id), files=files
        ),
        text=text,
        tools=TRIAGE_TOOLS & tools.allowed(inbound),
        deadline=timezone.now() + timedelta(seconds=settings.TRIAGE_TIMEOUT_SECONDS),
        history=_history(run, origin)[0],
        message=run.message,
        workspace_id=run.workspace_id,
        inbound=inbound,
    )


def _history(run: Run, origin: str) -> tuple[Sequence[PastTurn], PastTurn | None]:
    return session_history(session_id=run.session_id, asker=origin) if run.has_history else ((), None)


def _approved_messages(review: Review, *, goes_on: bool) -> list[dict[str, Any]]:
    """Returns the messages that the owner approved.

    When an earlier turn that asked a question `goes_on`, only the messages since the question are returned. The turn
    knows the earlier messages and would act on them a second time.
    """
    speakers = [line["from"] for line in review.thread]
    if not goes_on or ASSISTANT not in speakers:
        return list(review.messages)
    asked = len(speakers) - 1 - speakers[::-1].index(ASSISTANT)
    return list(review.messages)[-speakers[asked:].count(CALLER) :]


def notes_of_task(run: Run) -> str:
    """Returns the namespace of a task's working memory."""
    return f"a2a-inbox/{run.task_id}"


def _told(skill: Skill) -> str:
    """Returns the prompt's text on the skill: name and description, or for a learned skill its id alone.

    Name and description of a learned skill come from a caller's words. A caller's words may not stand outside of the
    frame that marks them as the caller's.
    """
    return skill.slug if skill.by_example else f"{skill.name}: {skill.description}"


def _approval(review: Review) -> Approval:
    questions = [line["text"] for line in review.thread if line["from"] == OWNER]
    return Approval(instruction=review.decision_text, questions=questions)


def _workspace(run: Run) -> Path:
    return Path(settings.WORKSPACES_DIR) / run.workspace_slug

"""Running the prompts of owners' sessions. Called by Celery with a session's key; one prompt at a time."""

import logging
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from volcanic.aio.db import run_db
from volcanic.models import Prompt
from volcanic.runtime import tools
from volcanic.runtime.base import Outcome, Turn, TurnState
from volcanic.runtime.current import runner
from volcanic.runtime.tools import ToolError
from volcanic.selectors import session_history
from volcanic.turns.buffer import Chunk, TextBuffer
from volcanic.turns.execution import UNEXPECTED, ReleasedError, RunLostError, execute
from volcanic.turns.leases import WORKER, LocalRun, kept
from volcanic.turns.prompts import (
    LEASES,
    OWNER_ASKER,
    prompt_claim,
    prompt_finish,
    prompt_note_tool,
    prompt_restarted,
    prompt_write,
)

logger = logging.getLogger(__name__)


def prompt_run(*, session_id: int) -> None:
    """Runs the next prompt of a session, if one waits and none runs. The one after it gets a message of its own."""
    prompt = prompt_claim(session_id=session_id, worker=WORKER)
    if prompt is None:
        return
    answers = False
    with kept(LocalRun(LEASES, prompt.pk, prompt.attempt)) as run:
        try:
            turn = _turn(prompt)
            answers = turn.answers is not None
            outcome = execute(run, turn, PromptSink(prompt), runner().run)
        except ReleasedError:
            prompt_restarted(prompt=prompt)
            return
        except Exception:
            logger.exception("%s failed before its turn", run)
            outcome = Outcome(state=TurnState.FAILED, text=UNEXPECTED)
    if outcome is not None and not prompt_finish(prompt=prompt, outcome=outcome, answers=answers):
        logger.info("%s ended too late", run)


def _turn(prompt: Prompt) -> Turn:
    """Returns the turn that a prompt starts. A message of the owner answers what the assistant asked last; a follow-up
    answers nothing."""
    asker = OWNER_ASKER if prompt.kind == Prompt.Kind.MESSAGE else ""
    history, answers = session_history(session_id=prompt.session_id, asker=asker)
    workspace = prompt.session.workspace
    files = "".join(f"\n[file: {path}]" for path in prompt.files)
    return Turn(
        session_id=prompt.session_id,
        origin=prompt.origin,
        workspace=workspace.path,
        prompt=prompt.text + files,
        text=prompt.text,
        # The owner reads along: what the assistant wants to know, it asks in its answer.
        tools=tools.allowed(None) - {tools.REQUEST_INPUT},
        deadline=timezone.now() + timedelta(seconds=settings.TURN_TIMEOUT_SECONDS),
        history=history,
        answers=answers,
        workspace_id=workspace.pk,
    )


class PromptSink:
    """The sink of a prompt's run: what the assistant says shows in the prompt's answer while it speaks."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._buffer = TextBuffer(self._write)

    async def text(self, delta: str, *, restart: bool = False) -> None:
        """Takes a piece of the answer; see `volcanic.runtime.Sink`."""
        await self._buffer.add(delta, restart=restart)

    async def tool_call(self, name: str, arguments: dict[str, Any]) -> None:
        """Shows the owner which tool is about to run."""
        logger.info("tool call %s in prompt %s", name, self._prompt.pk)
        if not await run_db(prompt_note_tool, prompt=self._prompt, name=name):
            raise RunLostError

    async def artifact(self, artifact: dict[str, Any]) -> None:
        """Refuses an artifact: an owner's turn answers in words, and leaves files in the workspace."""
        raise ToolError("Nothing can be sent out of this turn. The owner sees the workspace's files.")

    async def close(self) -> None:
        """Waits until nothing is being written any more. The rest is written with the end of the run."""
        await self._buffer.close()

    async def _write(self, chunk: Chunk) -> bool:
        return await run_db(prompt_write, prompt=self._prompt, chunk=chunk)

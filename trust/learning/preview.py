"""The preview of a draft: the assistant tries the last request with tools that only look, and sends nothing."""

import asyncio
import logging
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from trust.learning.drafts import origin_of
from trust.models import SkillDraft
from trust.owner_events import draft_changed
from volcanic.aio.loop import run_on_loop
from volcanic.origins import caller_scope
from volcanic.runtime import tools
from volcanic.runtime.base import Inbound, Outcome, Sink, Turn, TurnFailedError, TurnState
from volcanic.runtime.current import runner
from volcanic.runtime.prompt import frame_inbound
from volcanic.runtime.silent import SilentSink
from volcanic.text import clean_text

logger = logging.getLogger(__name__)

MAX_PREVIEW = 4000
# The tools of a preview read only these, so that nobody outside notices.
_LOOKING = {tools.WORKSPACE, tools.MEMORY}


def draft_preview(*, draft_id: int) -> None:
    """Tries an open draft on the last request that it was learned from, and stores the answer or the problem.

    Does nothing for a draft that is not open, or whose current version was tried already.
    """
    draft = SkillDraft.objects.select_related("caller__workspace").filter(pk=draft_id).first()
    if draft is None or draft.state != SkillDraft.State.OPEN or draft.previewed_at is not None:
        return
    try:
        outcome = run_on_loop(_try(_turn(draft), SilentSink()))
    except TurnFailedError as error:
        outcome = Outcome(state=TurnState.FAILED, text=str(error))
    except Exception:
        logger.exception("draft %s could not be tried", draft.slug)
        outcome = Outcome(state=TurnState.FAILED, text="It could not be tried.")
    text = clean_text(outcome.text)[:MAX_PREVIEW]
    done = outcome.state in (TurnState.COMPLETED, TurnState.INPUT_REQUIRED)
    tried = SkillDraft.objects.filter(pk=draft.pk, version=draft.version, state=SkillDraft.State.OPEN)
    with transaction.atomic():
        if tried.update(
            preview=text if done else "", preview_problem="" if done else text, previewed_at=timezone.now()
        ):
            draft_changed(draft)


async def _try(turn: Turn, sink: Sink) -> Outcome:
    try:
        async with asyncio.timeout(settings.TRIAGE_TIMEOUT_SECONDS):
            return await runner().run(turn, sink)
    except TimeoutError:
        raise TurnFailedError(f"It took longer than {settings.TRIAGE_TIMEOUT_SECONDS} seconds.") from None


def _turn(draft: SkillDraft) -> Turn:
    caller = draft.caller
    inbound = Inbound(caller=caller.name, scope=caller_scope(caller.pk))
    looking = tools.allowed(inbound, reads=_LOOKING, changes=())
    text = draft.examples[0]
    return Turn(
        session_id=0,
        origin=origin_of(draft),
        workspace=caller.workspace.path,
        prompt=frame_inbound(caller=caller.name, text=text, skill=draft.slug),
        text=text,
        tools=looking & frozenset(draft.tools),
        deadline=timezone.now() + timedelta(seconds=settings.TRIAGE_TIMEOUT_SECONDS),
        workspace_id=caller.workspace_id,
        inbound=inbound,
        instructions=draft.instructions,
    )

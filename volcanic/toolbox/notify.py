"""Tool `notify_owner`: leaves a note for the owner during a caller's turn."""

from volcanic.aio.db import run_db
from volcanic.runtime.base import Inbound
from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.selectors import notifications_waiting
from volcanic.services import notification_create

NOTIFY_OWNER = "notify_owner"
MAX_TEXT = 2000
MAX_IN_TURN = 5
# Limit of one caller's unread notes. More would bury the notes of other callers.
MAX_WAITING = 100


def offered(inbound: Inbound | None) -> bool:
    """Returns whether the tool is offered: in callers' turns, if the owner allows notes from callers' turns."""
    return inbound is not None and inbound.notifier


async def notify_owner(context: ToolContext, text: str) -> str:
    """Leaves a line for your owner, who reads it later. There is no answer to it in this conversation.

    Args:
        text: What your owner should know or decide, in full sentences that can be understood alone.
    """
    inbound = context.inbound
    if inbound is None or not offered(inbound) or context.workspace_id is None:
        raise ToolError("Your owner can't be notified out of this conversation.")
    text = text.strip()
    if not text or len(text) > MAX_TEXT:
        raise ToolError(f"Tell your owner something of at most {MAX_TEXT} characters.")
    told = context.state.get(NOTIFY_OWNER, 0)
    if told >= MAX_IN_TURN:
        raise ToolError(f"Your owner was notified {told} times in this turn; that must do.")
    context.state[NOTIFY_OWNER] = told + 1
    await run_db(_notify, context.workspace_id, context.session_id, context.origin, inbound, text)
    return "Your owner will see it."


def _notify(workspace_id: int, session_id: int, origin: str, inbound: Inbound, text: str) -> None:
    if notifications_waiting(workspace_id=workspace_id, caller=inbound.caller) >= MAX_WAITING:
        raise ToolError("Your owner has not read what is there yet, and takes no more from this caller until then.")
    notification_create(
        workspace_id=workspace_id, session_id=session_id, text=text, origin=origin, caller=inbound.caller
    )

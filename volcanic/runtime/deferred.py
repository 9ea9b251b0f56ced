"""Deferred tool calls: those that end a turn, and go on when the other side has answered.

There are two kinds. A question (`request_input`) gets the answer as its result. A confirmation (a tool that is
registered with `confirm`) is run when the answer is a plain yes, and refused otherwise.
"""

import json
import re
from collections.abc import Sequence

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolDenied
from pydantic_ai.messages import ModelMessage, ToolCallPart

from volcanic.redaction import redact
from volcanic.runtime.base import Outcome, Turn, TurnState
from volcanic.runtime.history import dump
from volcanic.text import clean_text, one_line

MAX_ARGUMENTS = 1000

_YES = frozenset({"yes", "y", "yep", "yeah", "yes please", "ok", "okay", "sure", "do it", "yes do it", "go ahead"}) | {
    *("confirm", "confirmed", "approve", "approved", "ja", "ja bitte", "oui", "si", "s\u00ed", "sim")
}


def asked(requests: DeferredToolRequests, messages: Sequence[ModelMessage]) -> Outcome:
    """Returns the end of a turn that asks something: its questions, and the calls that need a yes."""
    questions = [str(call.args_as_dict().get("question", "")) for call in requests.calls]
    confirmations = [_confirmation(call) for call in requests.approvals]
    pending = {"tool_call_ids": [call.tool_call_id for call in requests.calls]}
    if requests.approvals:
        pending["confirm"] = [call.tool_call_id for call in requests.approvals]
    return Outcome(
        state=TurnState.INPUT_REQUIRED,
        text=clean_text("\n\n".join(dict.fromkeys([*questions, *confirmations]))),
        messages=dump(messages),
        pending=pending,
    )


def _confirmation(call: ToolCallPart) -> str:
    arguments = one_line(redact(json.dumps(call.args_as_dict(), ensure_ascii=False)), MAX_ARGUMENTS)
    return f"May I run {call.tool_name} with {arguments}? Answer yes, or say what to do instead."


def answer_calls(turn: Turn, calls: Sequence[ToolCallPart]) -> DeferredToolResults:
    """Returns what the open calls of the turn that `turn` answers result in."""
    pending = turn.answers.pending if turn.answers is not None else None
    confirm = set(pending.get("confirm", ())) if isinstance(pending, dict) else set()
    results = DeferredToolResults()
    for call in calls:
        if call.tool_call_id not in confirm:
            results.calls[call.tool_call_id] = clean_text(turn.prompt)
        elif is_yes(turn.text):
            results.approvals[call.tool_call_id] = True
        else:
            words = clean_text(turn.text)
            results.approvals[call.tool_call_id] = ToolDenied(f"Not run: the owner did not say yes. They said: {words}")
    return results


def is_yes(text: str) -> bool:
    """Tells whether an answer is a plain yes: nothing but one of a few words. What says more is no consent."""
    return " ".join(re.findall(r"\w+", text.casefold())) in _YES

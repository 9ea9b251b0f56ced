"""A session's past turns as messages for the model, and a turn's messages as they are stored."""

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from volcanic.runtime import tools
from volcanic.runtime.base import Inbound, PastTurn, Turn
from volcanic.runtime.prompt import frame_inbound
from volcanic.text import clean_json

logger = logging.getLogger(__name__)

NOT_ANSWERED = "The caller has not answered."
NOT_RUN = "The call was not carried out."


def build_history(turn: Turn) -> list[ModelMessage]:
    """Returns the session's past messages for the model.

    Providers refuse a tool call whose result does not follow at once. So a turn that answers a question is joined to
    the turn that asked, whatever happened between them, and a question that was never answered gets a result that
    says so. The one that this turn answers is left open.
    """
    chunks: list[list[ModelMessage]] = []
    for past in turn.history:
        messages = _load(past, turn.inbound)
        asked = _asking(chunks, messages)
        if asked is not None:
            chunks.append(chunks.pop(asked) + messages)
        elif not _answered(messages):  # an answer whose question is too long ago to be here is left out with it
            chunks.append(messages)
    history: list[ModelMessage] = []
    for index, messages in enumerate(chunks):
        history += messages
        answered_now = turn.answers is not None and index == len(chunks) - 1
        if not answered_now and (calls := unanswered_calls(messages)):
            history.append(ModelRequest(parts=[_no_result(call) for call in calls]))
    return history


def _asking(chunks: Sequence[Sequence[ModelMessage]], messages: Sequence[ModelMessage]) -> int | None:
    """Returns which of `chunks` ends in the question whose answer `messages` begin with, if they do."""
    answered = _answered(messages)
    for index in reversed(range(len(chunks))):
        if any(call.tool_call_id in answered for call in unanswered_calls(chunks[index])):
            return index
    return None


def _answered(messages: Sequence[ModelMessage]) -> set[str]:
    """Returns the ids of the calls of an earlier turn that a turn's `messages` begin with the results of."""
    first = messages[0] if messages else None
    return _results(first) if isinstance(first, ModelRequest) else set()


def _load(past: PastTurn, inbound: Inbound | None) -> list[ModelMessage]:
    messages: list[ModelMessage] = []
    try:
        for message in past.messages:
            if "role" in message:  # the neutral form, from a runner without a model
                messages.append(_from_neutral(message, inbound))
            else:
                messages += ModelMessagesTypeAdapter.validate_json(json.dumps([message]))
    except (ValidationError, TypeError, KeyError):
        # Better a conversation with a gap than one that can never go on.
        logger.exception("a stored turn can not be read and is left out of the history")
        return []
    return messages


def _from_neutral(message: dict[str, str], inbound: Inbound | None) -> ModelMessage:
    if message["role"] == "assistant":
        return ModelResponse(parts=[TextPart(message["text"])])
    # Nobody framed it where no model was to read it: in a caller's session it is that agent's words.
    text = message["text"] if inbound is None else frame_inbound(caller=inbound.caller, text=message["text"])
    return ModelRequest(parts=[UserPromptPart(text)])


def unanswered_calls(messages: Sequence[ModelMessage]) -> list[ToolCallPart]:
    """Returns the tool calls of the last response that have no result. Ids are not unique with every provider, so
    only what comes after that response counts."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            return [call for call in message.tool_calls if call.tool_call_id not in answered]
        answered |= _results(message)
    return []


def _results(request: ModelRequest) -> set[str]:
    return {part.tool_call_id for part in request.parts if isinstance(part, ToolReturnPart)}


def _no_result(call: ToolCallPart) -> ToolReturnPart:
    content = NOT_ANSWERED if call.tool_name == tools.REQUEST_INPUT else NOT_RUN
    return ToolReturnPart(tool_name=call.tool_name, content=content, tool_call_id=call.tool_call_id)


def dump(messages: Sequence[ModelMessage]) -> list[Any]:
    """Returns a turn's messages as they are stored."""
    # The instructions are made anew for each turn, and are the owner's files: no part of the transcript.
    bare = [
        replace(message, instructions=None) if isinstance(message, ModelRequest) else message for message in messages
    ]
    dumped: list[Any] = clean_json(ModelMessagesTypeAdapter.dump_python(bare, mode="json"))
    return dumped

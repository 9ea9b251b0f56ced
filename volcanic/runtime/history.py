"""Conversion between stored turns and pydantic-ai's messages."""

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

    Providers refuse a tool call whose result does not follow at once. Therefore a turn that asked a question is moved
    directly in front of the turn that answers the question. A question without an answer gets the result NOT_ANSWERED,
    another call without a result gets NOT_RUN. The question that `turn` answers stays open.
    """
    chunks: list[list[ModelMessage]] = []
    for past in turn.history:
        messages = _load(past, turn.inbound)
        asked = _asking(chunks, messages)
        if asked is not None:
            chunks.append(chunks.pop(asked) + messages)
        elif not _answered(messages):  # an answer is left out if its question is older than the history
            chunks.append(messages)
    history: list[ModelMessage] = []
    for index, messages in enumerate(chunks):
        history += messages
        answered_now = turn.answers is not None and index == len(chunks) - 1
        if not answered_now and (calls := unanswered_calls(messages)):
            history.append(ModelRequest(parts=[_no_result(call) for call in calls]))
    return history


def _asking(chunks: Sequence[Sequence[ModelMessage]], messages: Sequence[ModelMessage]) -> int | None:
    """Returns the index of the chunk with the question that `messages` begin to answer; None without such a chunk."""
    answered = _answered(messages)
    for index in reversed(range(len(chunks))):
        if any(call.tool_call_id in answered for call in unanswered_calls(chunks[index])):
            return index
    return None


def _answered(messages: Sequence[ModelMessage]) -> set[str]:
    """Returns the ids of an earlier turn's calls whose results are at the beginning of a turn's `messages`."""
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
        # A gap in the conversation is better than an error in each later turn of the session.
        logger.exception("a stored turn can not be read and is left out of the history")
        return []
    return messages


def _from_neutral(message: dict[str, str], inbound: Inbound | None) -> ModelMessage:
    if message["role"] == "assistant":
        return ModelResponse(parts=[TextPart(message["text"])])
    # A runner without a model stores text without a frame. In a caller's session, the caller wrote that text.
    text = message["text"] if inbound is None else frame_inbound(caller=inbound.caller, text=message["text"])
    return ModelRequest(parts=[UserPromptPart(text)])


def unanswered_calls(messages: Sequence[ModelMessage]) -> list[ToolCallPart]:
    """Returns the tool calls of the last response that have no result.

    Only results after that response count, since some providers reuse ids of calls.
    """
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
    """Returns a turn's messages as JSON values for the database, without the instructions."""
    # The instructions hold the owner's files and are built anew for each turn, so they are not in the transcript.
    bare = [
        replace(message, instructions=None) if isinstance(message, ModelRequest) else message for message in messages
    ]
    dumped: list[Any] = clean_json(ModelMessagesTypeAdapter.dump_python(bare, mode="json"))
    return dumped

"""The default runner: pydantic-ai with the model that the setting MODEL names.

Importing this module imports pydantic-ai, which takes seconds, so nothing imports it at start: workers load it by the
dotted path in the setting RUNNER.
"""

import asyncio
import functools
import inspect
import json
import logging
import typing
from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Annotated, Any, Self, TypeVar
from uuid import uuid4

import pydantic_ai
from django.conf import settings
from pydantic import Field, ValidationError
from pydantic_ai import (
    Agent,
    AgentStreamEvent,
    DeferredToolRequests,
    DeferredToolResults,
    FunctionToolset,
    ModelSettings,
    RunContext,
    UsageLimits,
    capture_run_messages,
)
from pydantic_ai.exceptions import (
    AgentRunError,
    CallDeferred,
    ContentFilterError,
    ModelAPIError,
    ModelHTTPError,
    OutputTokenLimitExceeded,
    ToolFailed,
    UsageLimitExceeded,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, infer_model
from pydantic_core import to_jsonable_python

from volcanic.redaction import redact
from volcanic.runtime import tools
from volcanic.runtime.base import Inbound, Outcome, PastTurn, Sink, Turn, TurnFailedError, TurnState
from volcanic.runtime.prompt import frame_inbound, system_prompt
from volcanic.text import clean_json, clean_text

logger = logging.getLogger(__name__)

NOT_ANSWERED = "The caller has not answered."
NOT_RUN = "The call was not carried out."
CUT = "The answer was cut at the model's length limit."
MAX_REASON = 500
# Model requests in one turn: a model that calls tools in circles ends here.
MAX_REQUESTS = 50
TOOL_RETRIES = 2
# For one structured output: the first try, and another if that does not fit.
WRITE_REQUESTS = 3

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class _Deps:
    context: tools.ToolContext
    sink: Sink


class AssistantRunner:
    """Runs turns with pydantic-ai. As an async context manager it closes its connections to the provider at the end."""

    def __init__(self, model: str | None = None) -> None:
        self._model = _make_model(model or settings.MODEL)
        self._agent: Agent[_Deps, str | DeferredToolRequests] = Agent(
            self._model,
            name="volcanic",
            deps_type=_Deps,
            output_type=[str, DeferredToolRequests],
            retries={"tools": TOOL_RETRIES},
            model_settings=_settings(),
        )

    async def __aenter__(self) -> Self:
        await self._agent.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._agent.__aexit__(kind, error, trace)

    async def run(self, turn: Turn, sink: Sink) -> Outcome:
        """Runs `turn` on the model and returns how it ended."""
        instructions = await asyncio.to_thread(system_prompt, turn.workspace, turn.instructions)
        history = build_history(turn)
        prompt = clean_text(turn.prompt)
        open_calls = _open_calls(history) if turn.answers else []
        answer = _Answer(sink)
        run_id = uuid4().hex
        with capture_run_messages() as messages:
            try:
                result = await self._agent.run(
                    None if open_calls else prompt,
                    run_id=run_id,
                    message_history=history,
                    deferred_tool_results=DeferredToolResults(calls={call.tool_call_id: prompt for call in open_calls})
                    if open_calls
                    else None,
                    instructions=instructions or None,
                    deps=_Deps(context=_context(turn, sink), sink=sink),
                    toolsets=[_toolset(turn.tools)],
                    usage_limits=UsageLimits(request_limit=MAX_REQUESTS),
                    event_stream_handler=answer.follow,
                )
            except OutputTokenLimitExceeded:
                new = _without_calls([message for message in messages if message.run_id == run_id])
                return await _completed(answer, _last_text(new), new, cut=True)
            except AgentRunError as error:
                logger.warning("the model failed a turn: %s: %s", type(error).__name__, redact(str(error)))
                raise TurnFailedError(_explain(error)) from error
        new = result.new_messages()
        if isinstance(result.output, DeferredToolRequests):
            return _asked(result.output, new)
        return await _completed(answer, result.output, new, cut=result.response.finish_reason == "length")

    async def write(self, *, instructions: str, prompt: str, output: type[T]) -> T:
        """Returns the model's structured output; see `volcanic.runtime.base.Writer`."""
        try:
            writing = Agent(self._model, output_type=output, instructions=instructions, model_settings=_settings())
            limits = UsageLimits(request_limit=WRITE_REQUESTS)
            async with asyncio.timeout(settings.TRIAGE_TIMEOUT_SECONDS):
                result = await writing.run(clean_text(prompt), usage_limits=limits)
        except TimeoutError:
            raise TurnFailedError("The model took too long.") from None
        except AgentRunError as error:
            logger.warning("the model wrote nothing that fits: %s: %s", type(error).__name__, redact(str(error)))
            raise TurnFailedError(_explain(error)) from error
        return result.output


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
        if not answered_now and (calls := _open_calls(messages)):
            history.append(ModelRequest(parts=[_no_result(call) for call in calls]))
    return history


def _asking(chunks: Sequence[Sequence[ModelMessage]], messages: Sequence[ModelMessage]) -> int | None:
    """Returns which of `chunks` ends in the question whose answer `messages` begin with, if they do."""
    answered = _answered(messages)
    for index in reversed(range(len(chunks))):
        if any(call.tool_call_id in answered for call in _open_calls(chunks[index])):
            return index
    return None


def _answered(messages: Sequence[ModelMessage]) -> set[str]:
    """Returns the ids of the calls of an earlier turn that a turn's `messages` begin with the results of."""
    first = messages[0] if messages else None
    return _results(first) if isinstance(first, ModelRequest) else set()


def _settings() -> ModelSettings:
    return ModelSettings(max_tokens=settings.MODEL_MAX_TOKENS)


def _make_model(name: str) -> Model:
    if name == "faux":
        from volcanic.runtime.faux import FauxModel

        return FauxModel()
    return infer_model(name)


def _context(turn: Turn, sink: Sink) -> tools.ToolContext:
    return tools.ToolContext(
        session_id=turn.session_id,
        origin=turn.origin,
        workspace=turn.workspace,
        workspace_id=turn.workspace_id,
        inbound=turn.inbound,
        sink=sink,
        deadline=turn.deadline,
    )


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


def _open_calls(messages: Sequence[ModelMessage]) -> list[ToolCallPart]:
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


def _dump(messages: Sequence[ModelMessage]) -> list[Any]:
    # The instructions are made anew for each turn, and are the owner's files: no part of the transcript.
    bare = [
        replace(message, instructions=None) if isinstance(message, ModelRequest) else message for message in messages
    ]
    dumped: list[Any] = clean_json(ModelMessagesTypeAdapter.dump_python(bare, mode="json"))
    return dumped


# How a turn ends.


async def _completed(answer: "_Answer", text: str, messages: Sequence[ModelMessage], *, cut: bool) -> Outcome:
    text = clean_text(text)
    await answer.settle(text)
    return Outcome(
        state=TurnState.COMPLETED, text=text, messages=_dump(messages), message=CUT if cut and not text else ""
    )


def _asked(requests: DeferredToolRequests, messages: Sequence[ModelMessage]) -> Outcome:
    questions = [str(call.args_as_dict().get("question", "")) for call in requests.calls]
    return Outcome(
        state=TurnState.INPUT_REQUIRED,
        text=clean_text("\n\n".join(dict.fromkeys(questions))),
        messages=_dump(messages),
        pending={"tool_call_ids": [call.tool_call_id for call in requests.calls]},
    )


def _without_calls(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Returns `messages` up to the last response, of which only the text is kept: its calls were cut, not made."""
    kept = list(messages)
    while kept:
        if isinstance(last := kept.pop(), ModelResponse):
            parts = [part for part in last.parts if isinstance(part, TextPart) and part.content]
            return [*kept, replace(last, parts=parts)] if parts else kept
    return list(messages)


def _last_text(messages: Sequence[ModelMessage]) -> str:
    last = messages[-1] if messages else None
    return (last.text or "") if isinstance(last, ModelResponse) else ""


def _explain(error: AgentRunError) -> str:
    """Returns what the other side may know about a provider's error: never its headers or addresses."""
    if isinstance(error, ModelHTTPError):
        reason = _reason(error.body)
        text = f"The model provider answered with an error ({error.status_code})" + (f": {reason}" if reason else ".")
    elif isinstance(error, ContentFilterError):
        text = "The model provider's content filter refused the answer."
    elif isinstance(error, ModelAPIError):
        text = "The model provider could not be reached, or broke off."
    elif isinstance(error, UsageLimitExceeded):
        text = "The turn was ended: it needed too many model requests."
    else:
        text = "The model gave no answer that could be used."
    # Redacted before it is cut, so that no half of a key is left.
    redacted = clean_text(redact(text))
    return redacted if len(redacted) <= MAX_REASON else redacted[: MAX_REASON - 1] + "…"


def _reason(body: object) -> str:
    """Returns the message in a provider's error body, wherever the provider put it."""
    if isinstance(body, dict):
        return _reason(body.get("message") or body.get("error"))
    return body.strip() if isinstance(body, str) and not body.lstrip().startswith("<") else ""


class _Answer:
    """Passes text on to the sink as it comes, and sees to it that the sink ends up with the last response's text."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._shown = ""

    async def follow(self, _ctx: RunContext[_Deps], events: AsyncIterable[AgentStreamEvent]) -> None:
        """Takes the events of one response, or of the tool calls after it, which hold no text."""
        restart = bool(self._shown)
        async for event in events:
            if text := clean_text(_text_of(event)):
                self._shown = text if restart else self._shown + text
                await self._sink.text(text, restart=restart)
                restart = False

    async def settle(self, text: str) -> None:
        """Replaces what was shown where the final answer is another text."""
        if text != self._shown:
            self._shown = text
            await self._sink.text(text, restart=True)


def _text_of(event: AgentStreamEvent) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


# Tools.


def _toolset(names: frozenset[str]) -> FunctionToolset[_Deps]:
    given = [_make_tool(tool) for tool in tools.get(names)]
    if tools.REQUEST_INPUT in names:
        given.append(pydantic_ai.Tool(_request_input, name=tools.REQUEST_INPUT))
    return FunctionToolset(given)


async def _request_input(question: Annotated[str, Field(min_length=1)]) -> str:
    """Asks the other side a question that you need answered before you can go on.

    Your turn ends here; the answer comes as this call's result. Ask everything you need at once, and only what you
    can not find out otherwise.

    Args:
        question: The question, in full sentences, with all that is needed to answer it.
    """
    raise CallDeferred(kind="question")


@functools.cache
def _make_tool(tool: tools.Tool) -> pydantic_ai.Tool[_Deps]:
    """Returns `tool` for pydantic-ai, which reads the parameters off a signature that starts with its RunContext."""

    async def call(run: RunContext[_Deps], **arguments: Any) -> Any:
        await run.deps.sink.tool_call(tool.name, to_jsonable_python(arguments))
        try:
            return _clean_result(to_jsonable_python(await tool.function(run.deps.context, **arguments), fallback=str))
        except tools.ToolError as error:
            raise ToolFailed(clean_text(redact(str(error)))) from error
        except Exception as error:
            logger.exception("tool %s failed", tool.name)
            raise ToolFailed(clean_text(redact(f"{tool.name} failed: {type(error).__name__}: {error}"))) from error

    signature = inspect.signature(tool.function)
    first, *rest = signature.parameters.values()
    hints = typing.get_type_hints(tool.function, include_extras=True)
    parameter = inspect.Parameter("run", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=RunContext[_Deps])
    call.__signature__ = signature.replace(parameters=[parameter, *rest])  # type: ignore[attr-defined]
    call.__annotations__ = {name: hint for name, hint in hints.items() if name != first.name} | {
        "run": RunContext[_Deps]
    }
    call.__doc__ = tool.function.__doc__
    return pydantic_ai.Tool(call, name=tool.name, description=tool.description or None, takes_ctx=True)


def _clean_result(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(redact(value))
    if isinstance(value, dict):
        return {clean_text(str(key)): _clean_result(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean_result(item) for item in value]
    return value

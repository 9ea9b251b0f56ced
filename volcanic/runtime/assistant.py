"""Default runner: pydantic-ai with the model that the setting MODEL names.

This module imports pydantic-ai, which takes seconds. Therefore nothing imports this module at start: workers load it
through the dotted path in the setting RUNNER.
"""

import asyncio
import logging
from collections.abc import AsyncIterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeVar
from uuid import uuid4

from django.conf import settings
from pydantic_ai import (
    Agent,
    AgentStreamEvent,
    DeferredToolRequests,
    ModelSettings,
    RunContext,
    UsageLimits,
    capture_run_messages,
)
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelHTTPError,
    OutputTokenLimitExceeded,
    UsageLimitExceeded,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model, infer_model

from volcanic.redaction import redact
from volcanic.runtime import tools
from volcanic.runtime.base import Outcome, Sink, Turn, TurnFailedError, TurnState
from volcanic.runtime.deferred import answer_calls, asked
from volcanic.runtime.history import build_history, dump, unanswered_calls
from volcanic.runtime.prompt import system_prompt
from volcanic.runtime.toolset import Deps, toolset
from volcanic.text import clean_text, cut

logger = logging.getLogger(__name__)

CUT = "The answer was cut at the model's length limit."
MAX_REASON = 500
# Limit of model requests in one turn, which stops a model that calls tools without end.
MAX_REQUESTS = 50
TOOL_RETRIES = 2
# Limit of model requests for one structured output, retries of an invalid output included.
WRITE_REQUESTS = 3

T = TypeVar("T")


class AssistantRunner:
    """Runs turns with pydantic-ai. Used as an async context manager, it closes its connections to the provider."""

    def __init__(self, model: str | None = None) -> None:
        self._model = _make_model(model or settings.MODEL)
        self._agent: Agent[Deps, str | DeferredToolRequests] = Agent(
            self._model,
            name="volcanic",
            deps_type=Deps,
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
        """Runs `turn` on the model and returns its outcome. Raises TurnFailedError for errors of the model."""
        instructions = await asyncio.to_thread(system_prompt, turn.workspace, turn.instructions)
        history = build_history(turn)
        prompt = clean_text(turn.prompt)
        open_calls = unanswered_calls(history) if turn.answers else []
        answer = _Answer(sink)
        run_id = uuid4().hex
        with capture_run_messages() as messages:
            try:
                result = await self._agent.run(
                    None if open_calls else prompt,
                    run_id=run_id,
                    message_history=history,
                    deferred_tool_results=answer_calls(turn, open_calls) if open_calls else None,
                    instructions=instructions or None,
                    deps=Deps(context=_context(turn, sink), sink=sink),
                    toolsets=[toolset(turn.tools)],
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
            return asked(result.output, new)
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


# How a turn ends.


async def _completed(answer: "_Answer", text: str, messages: Sequence[ModelMessage], *, cut: bool) -> Outcome:
    text = clean_text(text)
    await answer.settle(text)
    return Outcome(
        state=TurnState.COMPLETED, text=text, messages=dump(messages), message=CUT if cut and not text else ""
    )


def _without_calls(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Returns `messages` up to the last response, with only the text of that response: its tool calls were cut off."""
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
    """Returns an error text for the other side, without the provider's headers or addresses."""
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
    # Redacted before the cut, so that no part of a key remains.
    return cut(clean_text(redact(text)), MAX_REASON)


def _reason(body: object) -> str:
    """Returns the message in a provider's error body, which providers nest differently; "" if there is no message."""
    if isinstance(body, dict):
        return _reason(body.get("message") or body.get("error"))
    return body.strip() if isinstance(body, str) and not body.lstrip().startswith("<") else ""


class _Answer:
    """Passes streamed text to the sink, and makes sure that the sink ends with the last response's text."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._shown = ""

    async def follow(self, _ctx: RunContext[Deps], events: AsyncIterable[AgentStreamEvent]) -> None:
        """Handles the events of one response, or of the tool calls after it, which contain no text."""
        restart = bool(self._shown)
        async for event in events:
            if text := clean_text(_text_of(event)):
                self._shown = text if restart else self._shown + text
                await self._sink.text(text, restart=restart)
                restart = False

    async def settle(self, text: str) -> None:
        """Replaces the shown text if the final answer differs."""
        if text != self._shown:
            self._shown = text
            await self._sink.text(text, restart=True)


def _text_of(event: AgentStreamEvent) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""

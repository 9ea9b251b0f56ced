"""Scripted model `faux`, which needs no key and no network: the prompt's text is a script for its answer.

The lines of the script are executed in order, in one turn:

    ask: QUESTION      calls `request_input` with QUESTION. After the answer, the rest of the script is executed. If the
                       question is the last line, the model says `You said: ANSWER`.
    sleep: SECONDS     waits for this many seconds (a decimal number).
    stream: N          sends N chunks, 20 ms apart: `chunk 1`, ` chunk 2`, … ` chunk N`.
    fail: TEXT         ends the turn with a model provider's error with TEXT.
    long               sends some text and ends it at the length limit. The rest of the script is skipped.
    tool: NAME JSON    calls the tool NAME with the arguments in the JSON object (`{}` when left out). The tool's result
                       is the first line of the text that follows.
    anything else      is plain text and is sent back unchanged, empty lines too.

Sent lines are joined by line breaks, so that the answer to a text without commands is exactly that text. A command that
does not parse (`sleep: soon`) is plain text. As with any model, text before a tool call or a question is only a
preamble: the answer is the text after the last call. The answer to a script that sends nothing is `Done.`, the answer
to an empty script `(empty message)`. An answer to a question is not executed as a script.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pydantic_ai import ModelSettings, RunContext
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolReturnPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from volcanic.runtime.prompt import unframe
from volcanic.runtime.tools import REQUEST_INPUT

PAUSE_SECONDS = 0.02
LONG_TEXT = "This answer goes on and on until it is cut at the length li"

_VERBS = frozenset({"ask", "sleep", "stream", "fail", "tool"})
_NUMBER = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")

Item = str | dict[int, DeltaToolCall]


@dataclass(frozen=True)
class Step:
    """One line of a script. `verb` is `say` for plain text; `arguments` are the arguments of a tool call."""

    verb: str
    text: str = ""
    number: float = 0
    arguments: dict[str, Any] | None = None


class FauxModel(FunctionModel):
    """The scripted model. The module's docstring describes the scripts."""

    def __init__(self) -> None:
        super().__init__(stream_function=_respond, model_name="faux")

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Streams the next response as FunctionModel does, with the finish reason "length" if `long` cuts it."""
        stream = super().request_stream(messages, model_settings, model_request_parameters, run_context)
        async with stream as response:
            # FunctionModel offers no way to set the finish reason.
            if any(step.verb == "long" for step in _due(messages)[1]):
                response.finish_reason = "length"
            yield response


def parse(text: str) -> list[Step]:
    """Returns the steps of a script, one for each line."""
    return [_parse_line(line) for line in text.split("\n")] if text else []


def _parse_line(line: str) -> Step:
    verb, _, rest = line.partition(":")
    rest = rest.strip()
    if line.rstrip() == "long":
        return Step("long")
    if verb not in _VERBS or not rest:
        return Step("say", line)
    if verb == "tool":
        return _parse_tool(rest) or Step("say", line)
    if verb in ("sleep", "stream"):
        return Step(verb, number=float(rest)) if _NUMBER.fullmatch(rest) else Step("say", line)
    return Step(verb, rest, arguments={"question": rest} if verb == "ask" else None)


def _parse_tool(rest: str) -> Step | None:
    name, _, text = rest.partition(" ")
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return Step("tool", name, arguments=arguments) if isinstance(arguments, dict) else None


def _due(messages: Sequence[ModelMessage]) -> tuple[list[str], list[Step], bool]:
    """Returns the opening lines, the steps up to and including the next call, and whether the script is empty.

    The opening lines hold the result of the last call.
    """
    prompt, results = _script(messages)
    steps = parse(prompt)
    calls = [index for index, step in enumerate(steps) if step.verb in ("ask", "tool")]
    start = calls[len(results) - 1] + 1 if results else 0
    end = calls[len(results)] + 1 if len(results) < len(calls) else len(steps)
    opening: list[str] = []
    if results:
        call, result = steps[start - 1], results[-1]
        answered = call.verb == "ask" and result.outcome == "success"
        text = unframe(result.model_response_str(wrap_if_error=False))
        if not answered:
            opening = [text]
        elif start == len(steps):
            opening = [f"You said: {text}"]
    return opening, steps[start:end], not steps


def _script(messages: Sequence[ModelMessage]) -> tuple[str, list[ToolReturnPart]]:
    """Returns the last user text without its frame, and the results of later tool calls."""
    prompt = ""
    results: list[ToolReturnPart] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            continue
        prompts = [part for part in message.parts if isinstance(part, UserPromptPart)]
        if prompts:
            content = prompts[-1].content
            prompt = content if isinstance(content, str) else "\n".join(str(item) for item in content)
            results = []
        else:
            results += [part for part in message.parts if isinstance(part, ToolReturnPart)]
    return unframe(prompt), results


async def _respond(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Item]:
    opening, steps, empty = _due(messages)
    sent = False
    for text in opening:
        yield text
        sent = True
    for step in steps:
        lead = "\n" if sent else ""
        async for item in _play(step):
            yield lead + item if isinstance(item, str) else item
            lead, sent = "", True
        if step.verb == "long":
            return
    if not sent:
        yield "(empty message)" if empty else "Done."


async def _play(step: Step) -> AsyncIterator[Item]:
    match step.verb:
        case "say":
            yield step.text
        case "sleep":
            await asyncio.sleep(step.number)
        case "stream":
            for number in range(1, int(step.number) + 1):
                yield f"chunk {number}" if number == 1 else f" chunk {number}"
                await asyncio.sleep(PAUSE_SECONDS)
        case "fail":
            raise ModelHTTPError(500, "faux", {"message": step.text})
        case "long":
            yield LONG_TEXT
        case _:
            name = REQUEST_INPUT if step.verb == "ask" else step.text
            yield {0: DeltaToolCall(name, json.dumps(step.arguments), tool_call_id=f"faux_{uuid4().hex}")}

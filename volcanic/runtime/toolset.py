"""Adapter that turns registered tools into pydantic-ai's tools."""

import functools
import inspect
import logging
import typing
from dataclasses import dataclass
from typing import Annotated, Any

import pydantic_ai
from pydantic import Field
from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.exceptions import CallDeferred, ToolFailed
from pydantic_core import to_jsonable_python

from volcanic.redaction import redact
from volcanic.runtime import tools
from volcanic.runtime.base import Sink
from volcanic.text import clean_text

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Deps:
    """Dependencies of a tool call."""

    context: tools.ToolContext
    sink: Sink


def toolset(names: frozenset[str]) -> FunctionToolset[Deps]:
    """Returns pydantic-ai's toolset of the tools with these names. `request_input` is a tool that ends the turn."""
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
def _make_tool(tool: tools.Tool) -> pydantic_ai.Tool[Deps]:
    """Returns `tool` as pydantic-ai's tool, which takes its parameters from a signature that starts with RunContext."""

    async def call(run: RunContext[Deps], **arguments: Any) -> Any:
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
    parameter = inspect.Parameter("run", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=RunContext[Deps])
    call.__signature__ = signature.replace(parameters=[parameter, *rest])  # type: ignore[attr-defined]
    call.__annotations__ = {name: hint for name, hint in hints.items() if name != first.name} | {
        "run": RunContext[Deps]
    }
    call.__doc__ = tool.function.__doc__
    return pydantic_ai.Tool(
        call,
        name=tool.name,
        description=tool.description or None,
        takes_ctx=True,
        requires_approval=tool.confirm,
    )


def _clean_result(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(redact(value))
    if isinstance(value, dict):
        return {clean_text(str(key)): _clean_result(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean_result(item) for item in value]
    return value

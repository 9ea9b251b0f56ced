"""Python functions that answer requests for a skill in the assistant's place: those that SKILL_HANDLERS lists."""

import inspect
from functools import cache
from typing import Protocol

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from volcanic.runtime.base import Outcome, Sink, Turn


class SkillHandler(Protocol):
    """Answers requests for a skill. Called on the worker's one event loop, under the contract of `Runner.run`."""

    async def __call__(self, turn: Turn, sink: Sink) -> Outcome:
        """Works on `turn` to its end and returns how it ended. Raises TurnFailedError for what the caller may know."""
        ...


def handler(path: str) -> SkillHandler:
    """Returns what a dotted path of SKILL_HANDLERS names. Loaded once for each process.

    Raises LookupError for a path that is not in the list, without looking at it; ImproperlyConfigured for one that is
    and can't be used.
    """
    if path not in settings.SKILL_HANDLERS:
        raise LookupError(f"{path} is not in SKILL_HANDLERS")
    return load(path)


@cache
def load(path: str) -> SkillHandler:
    """Imports a handler. Raises ImproperlyConfigured where there is none; what its module raises comes through."""
    try:
        found = import_string(path)
    except ImportError as error:
        raise ImproperlyConfigured(f"{path} can't be imported: {error}") from None
    if inspect.isclass(found) or not (
        inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(getattr(found, "__call__", None))  # noqa: B004
    ):
        raise ImproperlyConfigured(f"{path} is not an async function")
    try:
        inspect.signature(found).bind(None, None)
    except TypeError:
        raise ImproperlyConfigured(f"{path} does not take a turn and a sink") from None
    handler: SkillHandler = found
    return handler

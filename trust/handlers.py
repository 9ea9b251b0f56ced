"""Skill handlers: the Python functions in SKILL_HANDLERS that answer requests in place of the assistant."""

import inspect
from functools import cache
from typing import Protocol

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from volcanic.runtime.base import Outcome, Sink, Turn


class SkillHandler(Protocol):
    """Answers requests for a skill.

    The worker calls it on its one event loop, under the contract of `Runner.run`.
    """

    async def __call__(self, turn: Turn, sink: Sink) -> Outcome:
        """Works on `turn` and returns its outcome. Raises TurnFailedError with a reason that the caller may know."""
        ...


def handler(path: str) -> SkillHandler:
    """Returns the handler at a dotted path of SKILL_HANDLERS. A process loads each handler once.

    Raises LookupError for a path that is not in the list, without importing it. Raises ImproperlyConfigured for a
    listed path that can't be used.
    """
    if path not in settings.SKILL_HANDLERS:
        raise LookupError(f"{path} is not in SKILL_HANDLERS")
    return load(path)


@cache
def load(path: str) -> SkillHandler:
    """Imports a handler. Raises ImproperlyConfigured if it can't be used; other errors of its module pass through."""
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

"""The runner of this process, as RUNNER names it."""

from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from volcanic.runtime.base import Runner, Writer


@cache
def runner() -> Runner:
    """Returns this process's runner."""
    made: Runner = import_string(settings.RUNNER)()
    return made


def writer() -> Writer | None:
    """Returns what writes structured output here, None where there is no model to do it: with `faux`, or with a runner
    that has none."""
    if settings.MODEL == "faux":
        return None
    made = runner()
    return made if isinstance(made, Writer) else None

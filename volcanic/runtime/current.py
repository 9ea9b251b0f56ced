"""Runner of this process, an instance of the class that the setting RUNNER names."""

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
    """Returns the writer of structured output; None with the model `faux`, or with a runner without a model."""
    if settings.MODEL == "faux":
        return None
    made = runner()
    return made if isinstance(made, Writer) else None

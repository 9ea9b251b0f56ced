"""Commands of people at a shell: what they change is written down as theirs."""

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand

from volcanic.acting import acting_as


@contextmanager
def acting_from_shell() -> Iterator[None]:
    """Has `shell <user>` act for the time of the block: the system's user, whatever the environment says."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run as a user that it has no name for
        user = str(os.getuid())
    with acting_as(f"shell {user}"):
        yield


class ShellCommand(BaseCommand):
    """A command that acts as the user who runs it."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Runs the command as that user. Returns and raises what Django's does."""
        with acting_from_shell():
            return super().execute(*args, **options)

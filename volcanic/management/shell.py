"""Base of commands run by people at a shell: the audit names the user of the operating system as the actor."""

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand

from volcanic.acting import acting_as


@contextmanager
def acting_from_shell() -> Iterator[None]:
    """Sets the actor `shell <user>` within the block. The user comes from the process, not from the environment."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run as a user without a name
        user = str(os.getuid())
    with acting_as(f"shell {user}"):
        yield


class ShellCommand(BaseCommand):
    """A command that acts as the user who runs it."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Runs the command with that actor. Returns and raises the same as Django's method."""
        with acting_from_shell():
            return super().execute(*args, **options)

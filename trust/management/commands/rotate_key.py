"""`manage.py rotate_key`: makes a new key for a caller and prints it on stdout."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError

from trust.models import Caller
from trust.services import key_rotate
from volcanic.management.arguments import add_workspace_argument, workspace_from
from volcanic.management.shell import ShellCommand


class Command(ShellCommand):
    help = "Gives a caller a new key and prints only this key on stdout. The caller's other keys end after --grace."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds NAME and the options."""
        parser.add_argument("name")
        add_workspace_argument(parser)
        parser.add_argument(
            "--grace", type=float, default=0, metavar="SECONDS", help="how long the old keys still work"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Rotates the key. An unknown caller or a negative grace raises CommandError."""
        if options["grace"] < 0:
            raise CommandError("--grace must not be negative.")
        caller = Caller.objects.filter(workspace=workspace_from(options), name=options["name"]).first()
        if caller is None:
            raise CommandError(f"There is no caller {options['name']!r} in this workspace.")
        self.stdout.write(key_rotate(caller=caller, grace=timedelta(seconds=options["grace"])))

"""`manage.py create_caller`: makes a caller and prints its key on stdout."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from trust.models import Caller, Level
from trust.services import caller_create
from volcanic.management.arguments import add_workspace_argument, workspace_from
from volcanic.management.shell import ShellCommand


class Command(ShellCommand):
    help = "Makes a caller and prints only its key on stdout. Note the key: it can't be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds NAME and the options."""
        parser.add_argument("name", help="a-z, 0-9 and -, at most 40 characters")
        add_workspace_argument(parser)
        parser.add_argument("--level", choices=Level.values, default=Level.OBSERVE.value)
        parser.add_argument("--grant", metavar="SKILL", action="append", default=[], help="may be given several times")
        parser.add_argument("--note", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        """Makes the caller. A bad value raises CommandError, and then nothing is stored."""
        workspace = workspace_from(options)
        if Caller.objects.filter(workspace=workspace, name=options["name"]).exists():
            name = options["name"]
            raise CommandError(f"There is a caller {name!r} already. A new key for it: manage.py rotate_key {name}")
        try:
            _, key = caller_create(
                workspace=workspace,
                name=options["name"],
                level=Level(options["level"]),
                skills=options["grant"],
                note=options["note"],
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        self.stdout.write(key)

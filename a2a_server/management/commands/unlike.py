"""`manage.py unlike`: the owner takes back what let the assistant do a task without asking them."""

import uuid
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from a2a_server.models import Task
from a2a_server.services.unlike import task_unlike, unlike_told
from volcanic.management.shell import ShellCommand


class Command(ShellCommand):
    help = "Not like this: takes the grant back that a task ran on without the owner."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds TASK and the option."""
        parser.add_argument("task", type=uuid.UUID)
        parser.add_argument("--text", default="", help="what should have been different")

    def handle(self, *args: Any, **options: Any) -> None:
        """Takes it back; no such task, one that ran on no grant, or one that is marked already is a CommandError."""
        task = Task.objects.select_related("caller__workspace").filter(pk=options["task"]).first()
        if task is None:
            raise CommandError(f"There is no task {options['task']}.")
        slug = task_unlike(task=task, text=options["text"])
        if not slug:
            raise CommandError("It ran on no grant, or is marked already.")
        self.stdout.write(unlike_told(task, slug))

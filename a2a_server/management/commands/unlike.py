"""`manage.py unlike`: the owner marks a task that was done without asking them, and its grant is revoked."""

import uuid
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from a2a_server.models import Task
from a2a_server.services.unlike import task_unlike, unlike_told
from volcanic.management.shell import ShellCommand


class Command(ShellCommand):
    help = "Not like this: takes back the grant on which a task ran without asking the owner."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds the argument `task` and the option `--text`."""
        parser.add_argument("task", type=uuid.UUID)
        parser.add_argument("--text", default="", help="what should have been different")

    def handle(self, *args: Any, **options: Any) -> None:
        """Marks the task and revokes its grant.

        Raises CommandError for an unknown task, a task that ran on no grant, and a task that is marked already.
        """
        task = Task.objects.select_related("caller__workspace").filter(pk=options["task"]).first()
        if task is None:
            raise CommandError(f"There is no task {options['task']}.")
        slug = task_unlike(task=task, text=options["text"])
        if not slug:
            raise CommandError("The task ran on no grant, or is marked already.")
        self.stdout.write(unlike_told(task, slug))

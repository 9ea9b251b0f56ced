"""`manage.py learn`: learns from the owner's decisions at once, and lists the open drafts of skills."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from trust.learning.services import caller_learn
from trust.management import drafts
from trust.models import Caller, SkillDraft
from volcanic.management.arguments import add_workspace_argument, workspace_from
from volcanic.management.shell import ShellCommand


class Command(ShellCommand):
    help = "Learns about one caller or all callers, and lists the open drafts. `manage.py draft` decides them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds CALLER and the options."""
        parser.add_argument("caller", nargs="?", help="default: all callers of the workspace")
        add_workspace_argument(parser)
        parser.add_argument("--json", action="store_true", help="for scripts: prints JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Learns and prints all open drafts, new and old. An unknown caller raises CommandError."""
        callers = Caller.objects.filter(workspace=workspace_from(options)).order_by("name")
        name = options["caller"]
        learned = list(callers if name is None else callers.filter(name=name))
        if name is not None and not learned:
            raise CommandError(f"There is no caller {name!r} in this workspace.")
        for caller in learned:
            caller_learn(caller=caller)
        rows = SkillDraft.objects.filter(caller__in=learned, state=SkillDraft.State.OPEN).select_related("caller")
        facts = [drafts.listed(draft) for draft in rows.order_by("id")]
        if options["json"]:
            self.stdout.write(json.dumps(facts, ensure_ascii=False, indent=2))
        else:
            self.stdout.write("\n".join(drafts.lines(one) for one in facts) or "Nothing is proposed.")

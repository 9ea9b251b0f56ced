"""`manage.py draft`: shows the draft of a skill, approves it or rejects it."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from trust.errors import DraftDecidedError
from trust.learning.services import draft_approve, draft_reject
from trust.management import drafts
from trust.models import SkillDraft
from volcanic.management.shell import ShellCommand

SHOW, APPROVE, REJECT = "show", "approve", "reject"


class Command(ShellCommand):
    help = "Shows a draft, approves it or rejects it. `manage.py learn` lists them."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Lets `--version` name the draft's version, in place of Django's option of the same name."""
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds ID, the action and the options."""
        parser.add_argument("id", type=int)
        parser.add_argument("do", choices=[SHOW, APPROVE, REJECT], metavar=f"{SHOW}|{APPROVE}|{REJECT}")
        parser.add_argument("--version", type=int, help="version that was shown; default: the draft's current version")
        parser.add_argument("--text", default="", help="reason for rejecting the draft")
        parser.add_argument("--json", action="store_true", help="for scripts: prints the changed draft as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Takes the action and prints the result. An unknown or decided draft raises CommandError."""
        do = options["do"]
        if options["text"] and do != REJECT:
            raise CommandError("--text goes with reject.")
        if options["version"] is not None and do == SHOW:
            raise CommandError("--version goes with approve and reject.")
        draft = SkillDraft.objects.select_related("caller__workspace", "skill").filter(pk=options["id"]).first()
        if draft is None:
            raise CommandError(f"There is no draft {options['id']}.")
        try:
            done = _decide(draft, do, options)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        except DraftDecidedError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            draft.refresh_from_db()
            self.stdout.write(json.dumps(drafts.told(draft), ensure_ascii=False, indent=2))
        else:
            self.stdout.write(done or drafts.text(drafts.told(draft)))


def _decide(draft: SkillDraft, do: str, options: dict[str, Any]) -> str:
    """Approves or rejects the draft and returns the result in words; "" if the draft is only shown."""
    version = draft.version if options["version"] is None else options["version"]
    if do == APPROVE:
        skill = draft_approve(draft=draft, version=version)
        return f"Approved: {draft.caller.name} may use {skill.slug} from now on."
    if do == REJECT:
        draft_reject(draft=draft, version=version, reason=options["text"])
        return f"Rejected: such requests of {draft.caller.name} are not proposed again."
    return ""

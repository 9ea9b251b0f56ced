"""`manage.py trust`: shows a caller's level, grants and history, and changes level and grants in one transaction."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.db import transaction

from trust.models import Caller, Level
from trust.selectors import audit_of_caller, every_skill_of, reviews_waiting
from trust.services import caller_set_level, grant_add, grant_revoke
from volcanic.management.arguments import add_workspace_argument, workspace_from
from volcanic.management.printing import iso, printable
from volcanic.management.shell import ShellCommand

HISTORY = 10


class Command(ShellCommand):
    help = "Changes a caller's level and grants if --level, --grant or --revoke is given, and then shows the caller."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds CALLER and the options."""
        parser.add_argument("caller")
        add_workspace_argument(parser)
        parser.add_argument("--level", choices=Level.values)
        parser.add_argument("--grant", metavar="SKILL", action="append", default=[], help="may be given several times")
        parser.add_argument("--revoke", metavar="SKILL", action="append", default=[], help="may be given several times")
        parser.add_argument("--stop", action="store_true", help="also ends the runs on the revoked grants")
        parser.add_argument("--reason", default="", help="reason for the history")
        parser.add_argument("--json", action="store_true", help="for scripts: prints JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Makes all changes or no change, and prints the caller. A bad value raises CommandError."""
        if options["stop"] and not options["revoke"]:
            raise CommandError("--stop goes with --revoke.")
        if options["reason"] and not (options["level"] or options["grant"] or options["revoke"]):
            raise CommandError("--reason goes with --level, --grant or --revoke.")
        if both := set(options["grant"]) & set(options["revoke"]):
            raise CommandError(f"Grant or revoke, not both: {', '.join(sorted(both))}.")
        workspace = workspace_from(options)
        with transaction.atomic():
            caller = Caller.objects.filter(workspace=workspace, name=options["caller"]).first()
            if caller is None:
                raise CommandError(f"There is no caller {options['caller']!r} in this workspace.")
            _change(caller, options)
            facts = _facts(caller)
        self.stdout.write(json.dumps(facts, ensure_ascii=False, indent=2) if options["json"] else _text(facts))


def _change(caller: Caller, options: dict[str, Any]) -> None:
    reason = options["reason"]
    if options["level"]:
        caller_set_level(caller=caller, level=Level(options["level"]), reason=reason)
    every = every_skill_of(caller.workspace_id)  # a disabled skill's grant can go, too
    for slug in options["revoke"]:
        if not every.filter(slug=slug).exists():
            raise CommandError(f"There is no skill {slug!r}.")
        if not grant_revoke(caller=caller, slug=slug, stop=options["stop"], reason=reason):
            raise CommandError(f"{caller.name} is not granted {slug}: there is nothing to revoke.")
    # Grants come last, since a revocation locks reviews before grants.
    for slug in options["grant"]:
        try:
            grant_add(caller=caller, slug=slug, reason=reason)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error


def _facts(caller: Caller) -> dict[str, Any]:
    grants = caller.grants.order_by("skill__slug", "id").values_list("skill__slug", "level")
    return {
        "caller": caller.name,
        "workspace": caller.workspace.slug,
        "level": str(caller.level),
        "enabled": caller.enabled,
        "grants": [{"skill": slug, "level": level} for slug, level in grants],
        "first_seen": iso(caller.first_seen_at),
        "last_interaction": iso(caller.last_interaction_at),
        "interactions": caller.interaction_count,
        "reviews_waiting": reviews_waiting(caller_id=caller.pk),
        "history": [
            {
                "at": iso(entry.at),
                "actor": entry.actor,
                "action": entry.action,
                "subject": entry.subject,
                "reason": entry.reason,
            }
            for entry in audit_of_caller(caller, HISTORY)
        ],
    }


def _text(facts: dict[str, Any]) -> str:
    grants = [f"{one['skill']} ({one['level']})" if one["level"] else one["skill"] for one in facts["grants"]]
    lines = [
        f"{facts['caller']} in {facts['workspace']}: {facts['level']}, {'enabled' if facts['enabled'] else 'disabled'}",
        f"granted: {', '.join(grants) or 'nothing'}",
        f"first seen: {facts['first_seen'] or 'never'}",
        f"last interaction: {facts['last_interaction'] or 'never'}",
        f"interactions: {facts['interactions']}",
        f"reviews that wait: {facts['reviews_waiting']}",
        "history, newest first:",
    ]
    for one in facts["history"]:
        words = f"  {one['at']}  {one['actor']}  {one['action']} {one['subject']}".rstrip()
        reason = printable(one["reason"])
        lines.append(f"{words}  — {reason}" if reason else words)
    return "\n".join(lines)

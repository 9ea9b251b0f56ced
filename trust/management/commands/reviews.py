"""`manage.py reviews`: lists the requests that wait for the owner."""

import json
from argparse import ArgumentParser
from typing import Any

from trust.models import Review
from volcanic.management.arguments import add_workspace_argument, workspace_from
from volcanic.management.printing import iso, printable
from volcanic.management.shell import ShellCommand


class Command(ShellCommand):
    help = "Lists the requests that wait for the owner's decision, the oldest first. `manage.py review` decides them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds the options."""
        add_workspace_argument(parser)
        parser.add_argument("--all", action="store_true", help="lists reviews that no longer wait, too")
        parser.add_argument("--json", action="store_true", help="for scripts: prints JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Prints the reviews. A missing workspace name raises CommandError if there are several workspaces."""
        rows = Review.objects.filter(caller__workspace=workspace_from(options)).select_related("caller").order_by("id")
        if not options["all"]:
            rows = rows.filter(state=Review.State.PENDING)
        facts = [_facts(review) for review in rows.defer("messages", "thread")]
        if options["json"]:
            self.stdout.write(json.dumps(facts, ensure_ascii=False, indent=2))
        else:
            self.stdout.write("\n".join(_lines(one) for one in facts) or "Nothing waits.")


def _facts(review: Review) -> dict[str, Any]:
    return {
        "id": review.pk,
        "task": str(review.task),
        "caller": review.caller.name,
        "level": str(review.level),
        "skill": review.skill,
        "state": str(review.state),
        "summary": review.summary,
        "suggestion": review.suggestion,
        "request": review.request,
        "created": iso(review.created_at),
        "expires": iso(review.expires_at),
        "digest": review.digest,
        "draft": review.draft_id,
    }


def _lines(facts: dict[str, Any]) -> str:
    """Returns a review in a few lines. A caller's words stay on their line, so they can't pass for another review."""
    return "\n".join(
        [
            f"{facts['id']}  {facts['caller']} ({facts['level']}) asks for {facts['skill']}: {facts['state']}",
            f"    since {facts['created']}, ends {facts['expires']}, task {facts['task']}",
            f"    {printable(facts['summary'] or facts['request'])}",
            f"    suggested: {printable(facts['suggestion']) or '—'}",
            *([f"    `grant` approves only what draft {facts['draft']} covers"] if facts["draft"] else []),
        ]
    )

"""Command line arguments that several commands share."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from volcanic.models import Workspace


def add_workspace_argument(parser: ArgumentParser) -> None:
    """Adds --workspace SLUG, which is needed only if there are several workspaces."""
    parser.add_argument("--workspace", metavar="SLUG", help="default: the only workspace")


def workspace_from(options: dict[str, Any]) -> Workspace:
    """Returns the workspace that --workspace names, else the only workspace. Raises CommandError without one."""
    slugs = list(Workspace.objects.order_by("id").values_list("slug", flat=True))
    slug = options["workspace"] or (slugs[0] if len(slugs) == 1 else None)
    if slug is None:
        raise CommandError(f"Name a workspace with --workspace. There are: {', '.join(slugs) or 'none'}.")
    if slug not in slugs:
        raise CommandError(f"There is no workspace {slug!r}. There are: {', '.join(slugs) or 'none'}.")
    return Workspace.objects.get(slug=slug)

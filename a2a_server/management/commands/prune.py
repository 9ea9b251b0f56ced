"""`manage.py prune`: deletes tasks that ended long ago, and what is left over without them."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from a2a_server.pruning import tasks_prune


class Command(BaseCommand):
    """Deletes what is older than RETENTION_DAYS. Safe at any time, and to be broken off and repeated."""

    help = "Deletes tasks that ended more than RETENTION_DAYS ago, with all that is theirs. Pinned ones stay."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the options."""
        parser.add_argument("--days", type=int, help="instead of RETENTION_DAYS; 0 keeps all tasks")
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        """Prunes and says how much."""
        days, dry_run = options["days"], options["dry_run"]
        if days is not None and days < 0:
            raise CommandError("--days must be 0 or more.")
        pruned = tasks_prune(days=days, dry_run=dry_run)
        self.stdout.write(f"{'Would delete' if dry_run else 'Deleted'}: {pruned}.")

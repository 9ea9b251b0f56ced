"""`manage.py prune`: deletes tasks that ended more than RETENTION_DAYS ago, with their leftovers."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from a2a_server.pruning import tasks_prune


class Command(BaseCommand):
    """Deletes old tasks. Safe to run at any time, to interrupt and to repeat."""

    help = "Deletes tasks that ended more than RETENTION_DAYS ago, with their files and transcripts. Pinned tasks stay."

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the options `--days` and `--dry-run`."""
        parser.add_argument("--days", type=int, help="age in days, instead of RETENTION_DAYS; 0 keeps all tasks")
        parser.add_argument("--dry-run", action="store_true", help="only count, delete nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Prunes and prints the numbers deleted. Raises CommandError for negative days."""
        days, dry_run = options["days"], options["dry_run"]
        if days is not None and days < 0:
            raise CommandError("--days must be 0 or more.")
        pruned = tasks_prune(days=days, dry_run=dry_run)
        self.stdout.write(f"{'Would delete' if dry_run else 'Deleted'}: {pruned}.")

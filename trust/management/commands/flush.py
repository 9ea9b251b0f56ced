"""`manage.py flush`: Django's command with a clear error, since a database with an audit can't be emptied."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import flush
from psycopg.errors import RestrictViolation


class Command(flush.Command):
    """Django's command with another error text."""

    def handle(self, **options: Any) -> None:
        """Empties the whole database or nothing. Raises CommandError if the audit has lines."""
        try:
            super().handle(**options)
        except CommandError as error:
            refused = error.__cause__ and error.__cause__.__cause__
            if not isinstance(refused, RestrictViolation):
                raise
            raise CommandError(
                "Nothing was deleted: the audit is append-only, and its table can't be emptied. To start with an empty "
                "database, drop this one and make another. `make clean` deletes the embedded database and everything "
                "else in VOLCANIC_VAR."
            ) from error

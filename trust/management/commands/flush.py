"""`manage.py flush`: Django's, which cannot empty a database with an audit in it; this one says so."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import flush
from psycopg.errors import RestrictViolation


class Command(flush.Command):
    """Django's command."""

    def handle(self, **options: Any) -> None:
        """Empties the database, all of it or nothing; an audit that keeps it from that is named in the CommandError."""
        try:
            super().handle(**options)
        except CommandError as error:
            refused = error.__cause__ and error.__cause__.__cause__
            if not isinstance(refused, RestrictViolation):
                raise
            raise CommandError(
                "Nothing was deleted: the audit is append-only, and nobody empties its table. To begin anew, drop the "
                "database and make another one; `make clean` deletes the embedded one, with all else in VOLCANIC_VAR."
            ) from error

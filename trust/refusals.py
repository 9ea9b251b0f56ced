"""The audit of calls refused without a valid identity: source, reason, path and count, never the credential."""

import asyncio
import logging
from collections.abc import Mapping

from django.db import DatabaseError, connection

from volcanic.aio.db import run_db

logger = logging.getLogger(__name__)

Refusal = tuple[str, str, str]  # source, reason, path

# Bounds that hold for any number of refused calls: seconds between two writes, rows in a write, rows in the table.
WRITE_SECONDS = 1.0
MOST_PENDING = 200
MOST_ROWS = 5000
# Counts the calls that exceed MOST_PENDING.
OTHERS: Refusal = ("others", "various", "")

_UPSERT = """
    INSERT INTO trust_refusedcall (source, reason, path, count, first_seen_at, last_seen_at)
    SELECT source, reason, path, count, now(), now()
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[]) AS new (source, reason, path, count)
    ON CONFLICT (source, reason, path)
    DO UPDATE SET count = trust_refusedcall.count + EXCLUDED.count, last_seen_at = EXCLUDED.last_seen_at
    RETURNING xmax = 0
"""
_TRIM = """
    DELETE FROM trust_refusedcall WHERE id IN (
        SELECT id FROM trust_refusedcall WHERE last_seen_at <= (
            SELECT last_seen_at FROM trust_refusedcall ORDER BY last_seen_at DESC OFFSET %s LIMIT 1
        ) FOR UPDATE SKIP LOCKED
    )
"""


def refused_calls_record(refusals: Mapping[Refusal, int]) -> None:
    """Adds counts to the table in one upsert. If rows were added, deletes the oldest rows beyond MOST_ROWS."""
    # Sorted, so that two processes that write the same rows wait for each other and do not deadlock.
    rows = sorted(refusals.items())
    with connection.cursor() as cursor:
        columns = [[key[index] for key, _ in rows] for index in range(3)]
        cursor.execute(_UPSERT, [*columns, [count for _, count in rows]])
        if any(inserted for (inserted,) in cursor.fetchall()):
            cursor.execute(_TRIM, [MOST_ROWS])


def collapsed_path(path: str) -> str:
    """Returns an endpoint's path without a task's id and the rest behind the id, since a caller chooses them."""
    head, tasks, _ = path.partition("/tasks/")
    return f"{head[:80]}/tasks/…" if tasks else path[:90]


class RefusalLog:
    """Collects refused calls in this process and writes them to the database in the background."""

    def __init__(self) -> None:
        self._pending: dict[Refusal, int] = {}
        self._writing: asyncio.Task[None] | None = None

    def note(self, source: str, reason: str, path: str) -> None:
        """Counts a refused call without a wait for the caller. The dictionary of counts is bounded by MOST_PENDING."""
        shown = "".join(character for character in source[:64] if character.isprintable())
        key: Refusal = (shown, reason, collapsed_path(path))
        if key not in self._pending and len(self._pending) >= MOST_PENDING:
            key = OTHERS
        self._pending[key] = self._pending.get(key, 0) + 1
        writing = self._writing
        if writing is None or writing.done() or writing.get_loop() is not asyncio.get_running_loop():
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, {}
            try:
                await run_db(refused_calls_record, batch)
            except DatabaseError:
                logger.warning("%d refused calls could not be written down", sum(batch.values()))
            await asyncio.sleep(WRITE_SECONDS)

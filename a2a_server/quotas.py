"""How much of each kind a caller may have at a time: checked by the statement that makes a task.

Far from every quota that statement counts and writes at once, without a lock: others that run beside it are too few to
reach the quota. Near one, or with a quota so small that one is always near, a caller's submissions take turns, and
what is counted is exact. In between, when a submission hangs while MARGIN others come and go, a quota can be passed by
as many tasks as database threads of all web processes hang so.
"""

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection
from psycopg.types.numeric import Int8

from a2a_server import queries
from a2a_server.errors import QuotaExceeded
from a2a_server.files import IncomingFile
from trust.limits import Limits

MARGIN = 32
_NO_LIMIT = 2**62
_LOCK_CLASS = 0x564F4C43
# A count of stored tasks that left room is good for so long.
_COUNT_SECONDS = 60.0
_MOST_COUNTS = 10_000


@dataclass(frozen=True, slots=True)
class Used:
    """What a caller has, as the statement counted it; what no quota asks for counts as 0."""

    fits: bool
    running: int
    contexts: int
    stored: int
    inbox_bytes: int


class _StoredCounts:
    """When a caller's stored tasks need to be counted again: to count some ten thousand for every message is too much.

    As long as a caller could not reach its quota within a minute even if each request it may make were a new task,
    one count a minute is as good as one each time.
    """

    def __init__(self) -> None:
        # For a caller and its quota, which the owner may change.
        self._good_until: OrderedDict[tuple[int, int], float] = OrderedDict()

    def due(self, caller_id: int, limits: Limits) -> bool:
        """Returns whether to count now."""
        return time.monotonic() >= self._good_until.get((caller_id, limits.max_stored_tasks), 0.0)

    def note(self, caller_id: int, stored: int, limits: Limits) -> None:
        """Takes down what was counted."""
        # Twice: so many may come in a minute around the moment when Redis goes away.
        most = 2 * limits.requests_per_minute or limits.max_stored_tasks // 2
        key = caller_id, limits.max_stored_tasks
        if stored + most + MARGIN >= limits.max_stored_tasks:
            self._good_until.pop(key, None)
            return
        self._good_until[key] = time.monotonic() + _COUNT_SECONDS
        self._good_until.move_to_end(key)
        if len(self._good_until) > _MOST_COUNTS:
            self._good_until.popitem(last=False)


_stored_counts = _StoredCounts()


@dataclass(frozen=True, kw_only=True)
class Check:
    """The quotas that one submission has to fit in."""

    caller_id: int
    limits: Limits
    continues: bool
    files: Sequence[IncomingFile]
    exact: bool = False

    def exactly(self) -> "Check":
        """Returns the same check, made while the caller's other submissions wait."""
        return Check(
            caller_id=self.caller_id, limits=self.limits, continues=self.continues, files=self.files, exact=True
        )

    @property
    def always_near(self) -> bool:
        """Whether there is no use in trying without a lock."""
        # A task that goes on is stored already, and its context open.
        counted = [self._running] if self.continues else [self._running, self._contexts, self._stored]
        return any(0 < limit <= MARGIN for limit in counted) or self._bytes is not None

    @property
    def _running(self) -> int:
        return self.limits.max_running_tasks

    @property
    def _contexts(self) -> int:
        return 0 if self.continues else self.limits.max_open_contexts

    @property
    def _stored(self) -> int:
        return 0 if self.continues else self.limits.max_stored_tasks

    @property
    def _bytes(self) -> int | None:
        """How many bytes may be there already, None for any number. What an address leads to counts as the most that
        it can be, until it is here."""
        if not self.files or not self.limits.max_inbox_bytes:
            return None
        coming = sum(settings.MAX_FILE_BYTES if file.content is None else len(file.content) for file in self.files)
        return self.limits.max_inbox_bytes - coming

    def statement(self) -> tuple[str, dict[str, Any]]:
        """Returns the statement that submits, and its parameters that concern quotas."""
        margin = 0 if self.exact else MARGIN
        values = {
            "count_open": bool(self._running or self._contexts),
            # All of one type, so that each statement is prepared once.
            "max_running": Int8(self._running - margin if self._running else _NO_LIMIT),
            "max_contexts": Int8(self._contexts - margin if self._contexts else _NO_LIMIT),
        }
        stored = self._stored if self.exact or _stored_counts.due(self.caller_id, self.limits) else 0
        if not stored and self._bytes is None:
            return queries.TASK_CONTINUE if self.continues else queries.TASK_CREATE, values
        values |= {
            "count_stored": Int8(stored),
            "max_stored": Int8(stored - margin if stored else _NO_LIMIT),
            "count_bytes": self._bytes is not None,
            "max_bytes": Int8(_NO_LIMIT if self._bytes is None else self._bytes),
            "file_bytes": Int8(settings.MAX_FILE_BYTES),
        }
        return queries.TASK_CONTINUE_THOROUGHLY if self.continues else queries.TASK_CREATE_THOROUGHLY, values

    def note(self, used: Used, values: dict[str, Any]) -> None:
        """Takes down what a statement counted."""
        if values.get("count_stored"):
            _stored_counts.note(self.caller_id, used.stored, self.limits)

    def files_fit(self, used: Used) -> bool:
        """Tells whether the files of a message fit that brings nothing else that counts."""
        return self._bytes is None or used.inbox_bytes <= self._bytes

    def lock(self) -> None:
        """Makes the caller's other submissions that are near a quota wait until this transaction has ended."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCK_CLASS, self.caller_id % 2**31])

    def refusal(self, used: Used) -> QuotaExceeded:
        """Returns the error for what does not fit."""
        limits = self.limits
        if self._running and used.running >= self._running:
            text = f"{used.running} tasks are submitted or working, and {self._running} may be: wait for one to end."
            return QuotaExceeded("maxRunningTasks", limit=self._running, used=used.running, text=text)
        if self._contexts and used.contexts >= self._contexts:
            text = f"{used.contexts} contexts have tasks that have not ended, and {self._contexts} may: end some."
            return QuotaExceeded("maxOpenContexts", limit=self._contexts, used=used.contexts, text=text)
        if self._stored and used.stored >= self._stored:
            text = f"{self._stored} tasks are stored, and no more may be until old ones are deleted."
            return QuotaExceeded("maxStoredTasks", limit=self._stored, used=used.stored, text=text)
        text = (
            f"Files of {used.inbox_bytes} bytes are stored, and with these it would be over {limits.max_inbox_bytes}."
        )
        return QuotaExceeded("maxInboxBytes", limit=limits.max_inbox_bytes, used=used.inbox_bytes, text=text)

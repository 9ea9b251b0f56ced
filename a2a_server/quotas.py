"""Quotas of callers: running tasks, open contexts, stored tasks, and bytes of stored files.

- Running tasks and open contexts are counted by the statement that makes or continues a task. Submissions that run at
  the same time don't see each other's tasks, so a caller can exceed these two quotas by as many tasks as the web
  processes have database threads (DB_THREADS each).
- Stored tasks are a count on the caller's row, which `usage_count` corrects each minute. Counting some ten thousand
  rows for each message would cost too much. The caller's rate limit bounds the tasks that are made between two counts.
- Bytes of files are a sum on the caller's row. Each submission adds to the sum, and `usage_count` corrects it.
"""

from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection
from psycopg.types.numeric import Int8

from a2a_server.errors import QuotaExceeded
from a2a_server.submission import Submission

_NO_LIMIT = 2**62

# A caller's files, in bytes. One that is to be fetched counts as the most that it can be while its task is open.
_BYTES_RESERVE = """
    UPDATE trust_caller SET inbox_bytes = inbox_bytes + %(coming)s
    WHERE id = %(caller)s AND inbox_bytes + %(coming)s <= %(most)s
"""
_BYTES_USED = "SELECT inbox_bytes FROM trust_caller WHERE id = %(caller)s"

# Mends the marks of what each caller has stored, where they are wrong. The mark of files is moved by its error, not set
# to what was counted: files that come meanwhile are in the mark, and not in the count.
_USAGE_COUNT = """
    WITH stored AS (SELECT caller_id, count(*) AS tasks FROM a2a_server_task GROUP BY caller_id),
    inbox AS (
        SELECT task.caller_id, sum(CASE
                   WHEN file.size IS NOT NULL THEN file.size
                   WHEN file.content IS NOT NULL THEN octet_length(file.content)
                   WHEN task.state IN ('submitted', 'working', 'input_required', 'auth_required') THEN %(file_bytes)s
                   ELSE 0 END) AS bytes
        FROM a2a_server_inboundfile AS file JOIN a2a_server_task AS task ON task.id = file.task_id
        GROUP BY task.caller_id)
    UPDATE trust_caller AS caller
    SET stored_tasks = counted.tasks,
        inbox_bytes = greatest(caller.inbox_bytes + counted.bytes - counted.marked_bytes, 0)
    FROM (SELECT caller.id, coalesce(stored.tasks, 0) AS tasks, coalesce(inbox.bytes, 0)::bigint AS bytes,
                 caller.stored_tasks AS marked_tasks, caller.inbox_bytes AS marked_bytes
          FROM trust_caller AS caller
          LEFT JOIN stored ON stored.caller_id = caller.id LEFT JOIN inbox ON inbox.caller_id = caller.id) AS counted
    WHERE caller.id = counted.id AND (counted.marked_tasks, counted.marked_bytes) <> (counted.tasks, counted.bytes)
"""


class Used(NamedTuple):
    """A caller's open tasks and contexts as the statement counted them (0 without a limit); whether one more fits."""

    fits: bool
    running: int
    contexts: int


def quota_values(submission: Submission) -> dict[str, Any]:
    """Returns the quota parameters of the statements that submit a message.

    A continued task is stored already and its context is open, so only the quota of running tasks applies to it.
    """
    limits, new = submission.limits, not submission.continues
    contexts = limits.max_open_contexts if new else 0
    stored = limits.max_stored_tasks if new else 0
    return {
        "count_open": bool(limits.max_running_tasks or contexts),
        # All of one PostgreSQL type, so that psycopg prepares each statement once.
        "max_running": Int8(limits.max_running_tasks or _NO_LIMIT),
        "max_contexts": Int8(contexts or _NO_LIMIT),
        "stored": Int8(submission.stored_tasks),
        "max_stored": Int8(stored or _NO_LIMIT),
    }


def refusal(submission: Submission, used: Used) -> QuotaExceeded:
    """Returns the error for a submission that exceeds a quota, `used` being what the statement counted."""
    limits, stored = submission.limits, submission.stored_tasks
    if limits.max_running_tasks and used.running >= limits.max_running_tasks:
        most = limits.max_running_tasks
        text = f"{used.running} tasks are submitted or working, and {most} may be: wait for one to end."
        return QuotaExceeded("maxRunningTasks", limit=most, used=used.running, text=text)
    if limits.max_open_contexts and used.contexts >= limits.max_open_contexts:
        most = limits.max_open_contexts
        text = f"{used.contexts} contexts have tasks that have not ended, and {most} may: end some."
        return QuotaExceeded("maxOpenContexts", limit=most, used=used.contexts, text=text)
    most = limits.max_stored_tasks
    text = f"{stored} tasks are stored, and {most} may be: no more is taken until old ones are deleted."
    return QuotaExceeded("maxStoredTasks", limit=most, used=stored, text=text)


def bytes_reserve(submission: Submission) -> None:
    """Adds the bytes of a submission's files to the caller's sum. Raises QuotaExceeded when the files don't fit.

    Has to run in the transaction that stores the files. The lock on the caller's row makes the sum exact, also for
    submissions at the same time. A file given by its URL counts as MAX_FILE_BYTES until it is fetched.
    """
    coming = sum(settings.MAX_FILE_BYTES if file.content is None else len(file.content) for file in submission.files)
    most = submission.limits.max_inbox_bytes
    values = {"caller": submission.caller_id, "coming": Int8(coming), "most": Int8(most or _NO_LIMIT)}
    with connection.cursor() as cursor:
        cursor.execute(_BYTES_RESERVE, values)
        if cursor.rowcount:
            return
        cursor.execute(_BYTES_USED, values)
        row = cursor.fetchone()
    used = row[0] if row else 0
    text = f"Files of {used} bytes are stored, and with these it would be over {most}."
    raise QuotaExceeded("maxInboxBytes", limit=most, used=used, text=text)


def usage_count() -> int:
    """Recounts the stored tasks and the bytes of files of each caller. Returns the number of callers corrected.

    Celery beat runs this each minute; pruning runs it at its end.
    """
    with connection.cursor() as cursor:
        cursor.execute(_USAGE_COUNT, {"file_bytes": Int8(settings.MAX_FILE_BYTES)})
        return int(cursor.rowcount)

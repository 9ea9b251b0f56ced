"""Writes the audit. Called inside the transaction of what it tells of: both happen, or neither."""

from trust.models import AuditEntry, Caller
from volcanic import acting
from volcanic.text import clean_text


def audit(
    action: str, *, caller: Caller | None = None, workspace_id: int | None = None, subject: str = "", reason: str = ""
) -> None:
    """Adds a line: the present actor did `action` (namespaced: `key.created`) to `caller`, or in the workspace.

    `subject` says what exactly it was done to, never a secret; `reason` is in people's words.
    """
    actor = acting.current()
    AuditEntry.objects.create(
        workspace_id=caller.workspace_id if caller else workspace_id,
        actor=actor.name,
        action=action,
        caller_id=caller.pk if caller else None,
        caller=caller.name if caller else "",
        subject=clean_text(subject)[:200],
        reason=clean_text(reason),
        request_id=actor.request_id,
    )

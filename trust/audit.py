"""The writer of the audit: adds a line inside the transaction of the change, so that both happen or neither."""

from trust.models import AuditEntry, Caller
from volcanic import acting
from volcanic.text import clean_text


def audit(
    action: str, *, caller: Caller | None = None, workspace_id: int | None = None, subject: str = "", reason: str = ""
) -> None:
    """Adds a line to the audit: the current actor did `action` to `caller`, or in the workspace.

    `action` is namespaced, such as `key.created`. `subject` names the object of the action. It never holds a secret,
    and is cut to 200 characters. `reason` is in people's words.
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

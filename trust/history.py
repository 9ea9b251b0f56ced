"""The trust history of a caller: each change of its level, grants and drafts, read from the audit."""

from dataclasses import dataclass

from django.db.models import Q

from trust.models import AuditEntry, Caller

MOST = 100

_WORDS = {
    "caller.level": "Level",
    "grant.added": "Granted",
    "grant.level": "Level for a skill",
    "grant.revoked": "Grant taken back",
    "draft.proposed": "Draft proposed",
    "draft.changed": "Draft edited",
    "draft.approved": "Draft approved",
    "draft.rejected": "Draft rejected",
    "draft.withdrawn": "Draft withdrawn",
    "draft.reopened": "Draft proposed again",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the trust history: the change in words, and its audit entry."""

    what: str
    entry: AuditEntry


def trust_history_of(caller: Caller) -> list[Step]:
    """Returns the latest MOST changes of a caller's level, grants and drafts, the oldest first."""
    history = Q(action="caller.level") | Q(action__startswith="grant.") | Q(action__startswith="draft.")
    rows = AuditEntry.objects.filter(history, caller_id=caller.pk).order_by("-id")[:MOST]
    return [Step(_WORDS.get(entry.action, entry.action), entry) for entry in reversed(rows)]

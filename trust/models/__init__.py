"""The tables of trust. Import them from here. Within this package, `callers` imports none of the other modules."""

from trust.models.audit import AuditEntry
from trust.models.callers import NAME_PATTERN, Caller, CallerIdentity, CallerKey, Level, RefusedCall
from trust.models.learning import SkillDraft
from trust.models.reviews import Observation, Review
from trust.models.skills import CHAT, NOTIFY_USER, QUERY_AVAILABILITY, Grant, Skill

__all__ = [
    "CHAT",
    "NAME_PATTERN",
    "NOTIFY_USER",
    "QUERY_AVAILABILITY",
    "AuditEntry",
    "Caller",
    "CallerIdentity",
    "CallerKey",
    "Grant",
    "Level",
    "Observation",
    "RefusedCall",
    "Review",
    "Skill",
    "SkillDraft",
]

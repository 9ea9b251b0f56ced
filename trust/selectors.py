"""Reads of callers, skills and grants."""

from dataclasses import dataclass, field

from django.db import connection
from django.db.models import Q, QuerySet

from trust.limits import Limits
from trust.models import Caller, Skill


@dataclass(frozen=True, slots=True)
class AuthenticatedCaller:
    """Who is calling, as far as a request needs to know."""

    id: int
    name: str
    workspace_id: int
    key_id: int
    # The key's last use was noted a while ago: note it again.
    key_use_is_stale: bool
    limits: Limits = field(default_factory=Limits.of)


# One row at most: a digest is unique across all workspaces.
_BY_DIGEST = """
    SELECT caller.id, caller.name, caller.workspace_id, key.id,
           key.last_used_at IS NULL OR key.last_used_at < now() - interval '1 minute',
           caller.requests_per_minute, caller.max_running_tasks, caller.max_open_contexts,
           caller.max_inbox_bytes, caller.max_stored_tasks
    FROM trust_callerkey AS key JOIN trust_caller AS caller ON caller.id = key.caller_id
    WHERE key.digest = %s AND caller.enabled
      AND key.revoked_at IS NULL AND (key.expires_at IS NULL OR key.expires_at > now())
"""


def caller_by_key_digest(digest: str) -> AuthenticatedCaller | None:
    """Returns the enabled caller that a usable key with this digest belongs to. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(_BY_DIGEST, [digest])
        row = cursor.fetchone()
    if row is None:
        return None
    caller_id, name, workspace_id, key_id, stale, *limits = row
    return AuthenticatedCaller(caller_id, name, workspace_id, key_id, stale, Limits.of(limits))


def skills_of_workspace(workspace_id: int) -> QuerySet[Skill]:
    """Returns the enabled skills of a workspace, the built-in ones included."""
    return Skill.objects.filter(Q(workspace_id=workspace_id) | Q(workspace=None), enabled=True).order_by("id")


def skills_granted_to(caller: Caller) -> QuerySet[Skill]:
    """Returns the enabled skills granted to a caller."""
    return Skill.objects.filter(grants__caller=caller, enabled=True).order_by("id")

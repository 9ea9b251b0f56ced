"""Reads of callers, skills and grants."""

from dataclasses import dataclass, field

from django.db import connection
from django.db.models import Q, QuerySet

from trust.limits import COLUMNS, Limits
from trust.models import Caller, CallerIdentity, Skill


@dataclass(frozen=True, slots=True)
class AuthenticatedCaller:
    """Who is calling, as far as a request needs to know."""

    id: int
    name: str
    workspace_id: int
    # None where it was not a key that told.
    key_id: int | None
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


def caller_by_identity(*, issuer: str, agent_id: str) -> tuple[AuthenticatedCaller, bool] | None:
    """Returns the caller that an identity stands for, and whether it is enabled. One statement."""
    columns = ("caller_id", "caller__name", "caller__workspace_id", "caller__enabled")
    limits = [f"caller__{column}" for column in COLUMNS]
    rows = CallerIdentity.objects.filter(issuer=issuer, agent_id=agent_id).values_list(*columns, *limits)[:1]
    for caller_id, name, workspace_id, enabled, *overrides in rows:
        return AuthenticatedCaller(caller_id, name, workspace_id, None, False, Limits.of(overrides)), enabled
    return None


def skills_of_workspace(workspace_id: int) -> QuerySet[Skill]:
    """Returns the enabled skills of a workspace, the built-in ones included."""
    return Skill.objects.filter(Q(workspace_id=workspace_id) | Q(workspace=None), enabled=True).order_by("id")


def skills_granted_to(caller: Caller) -> QuerySet[Skill]:
    """Returns the enabled skills granted to a caller."""
    return Skill.objects.filter(grants__caller=caller, enabled=True).order_by("id")

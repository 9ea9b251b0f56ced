"""Reads of callers, skills, grants, reviews and drafts."""

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from trust.limits import COLUMNS, Limits
from trust.models import AuditEntry, Caller, CallerIdentity, Level, Observation, Review, Skill, SkillDraft


@dataclass(frozen=True, slots=True)
class AuthenticatedCaller:
    """The caller of a request, with the facts that the request needs."""

    id: int
    name: str
    workspace_id: int
    # None if the caller was authenticated by something other than a key.
    key_id: int | None
    # True if the key's last use was noted more than a minute ago and is to be noted again.
    key_use_is_stale: bool
    limits: Limits = field(default_factory=Limits.of)
    # The number of the caller's stored tasks, as of the last count.
    stored_tasks: int = 0


# One row at most: a digest is unique across all workspaces.
_BY_DIGEST = """
    SELECT caller.id, caller.name, caller.workspace_id, key.id,
           key.last_used_at IS NULL OR key.last_used_at < now() - interval '1 minute', caller.stored_tasks,
           caller.requests_per_minute, caller.max_running_tasks, caller.max_open_contexts,
           caller.max_inbox_bytes, caller.max_stored_tasks
    FROM trust_callerkey AS key JOIN trust_caller AS caller ON caller.id = key.caller_id
    WHERE key.digest = %s AND caller.enabled
      AND key.revoked_at IS NULL AND (key.expires_at IS NULL OR key.expires_at > now())
"""


def caller_by_key_digest(digest: str) -> AuthenticatedCaller | None:
    """Returns the enabled caller that owns a usable key with this digest, else None. Runs one SQL statement."""
    with connection.cursor() as cursor:
        cursor.execute(_BY_DIGEST, [digest])
        row = cursor.fetchone()
    if row is None:
        return None
    caller_id, name, workspace_id, key_id, stale, stored, *limits = row
    return AuthenticatedCaller(caller_id, name, workspace_id, key_id, stale, Limits.of(limits), stored)


def caller_by_identity(*, issuer: str, agent_id: str) -> tuple[AuthenticatedCaller, bool] | None:
    """Returns the caller of an identity and whether it is enabled, else None. Runs one SQL statement."""
    columns = ("caller_id", "caller__name", "caller__workspace_id", "caller__enabled", "caller__stored_tasks")
    limits = [f"caller__{column}" for column in COLUMNS]
    rows = CallerIdentity.objects.filter(issuer=issuer, agent_id=agent_id).values_list(*columns, *limits)[:1]
    for caller_id, name, workspace_id, enabled, stored, *overrides in rows:
        return AuthenticatedCaller(caller_id, name, workspace_id, None, False, Limits.of(overrides), stored), enabled
    return None


def skills_of_workspace(workspace_id: int) -> QuerySet[Skill]:
    """Returns the enabled skills of a workspace, the built-in ones included."""
    return every_skill_of(workspace_id).filter(enabled=True).order_by("id")


def every_skill_of(workspace_id: int | None) -> QuerySet[Skill]:
    """Returns all skills of a workspace, disabled and built-in ones included."""
    return Skill.objects.filter(Q(workspace_id=workspace_id) | Q(workspace=None))


def skill_of_workspace(workspace_id: int, slug: str) -> Skill | None:
    """Returns the enabled skill of a workspace with this id, built-in ones included; None if there is none."""
    return skills_of_workspace(workspace_id).filter(slug=slug).first()


def audit_of_caller(caller: Caller, limit: int) -> list[AuditEntry]:
    """Returns the newest `limit` audit entries about a caller, the newest first."""
    return list(AuditEntry.objects.filter(caller_id=caller.pk).order_by("-id")[:limit])


@dataclass(frozen=True, slots=True)
class Standing:
    """The facts about a caller that policy asks for."""

    name: str
    enabled: bool
    level: Level
    grants: dict[str, Level | None]
    # Messages of notify-user that the owner has not read, counted up to a bound.
    unread_messages: int


_STANDING = """
    SELECT caller.name, caller.enabled, caller.level,
           (SELECT coalesce(jsonb_object_agg(skill.slug, g.level), '{}')::text
            FROM trust_grant AS g JOIN trust_skill AS skill ON skill.id = g.skill_id
            WHERE g.caller_id = caller.id AND skill.enabled),
           (SELECT count(*) FROM (
                SELECT FROM volcanic_notification AS notification
                WHERE notification.workspace_id = caller.workspace_id AND notification.caller = caller.name
                  AND notification.read_at IS NULL AND notification.kind = 'message'
                LIMIT %(most)s) AS counted)
    FROM trust_caller AS caller WHERE caller.id = %(caller)s
"""


def caller_standing(*, caller_id: int, most_unread: int) -> Standing | None:
    """Returns the standing of a caller, None if the caller is gone. Runs one SQL statement.

    Unread messages are counted up to `most_unread`.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STANDING, {"caller": caller_id, "most": most_unread})
        row = cursor.fetchone()
    if row is None:
        return None
    grants = {slug: Level(level) if level else None for slug, level in json.loads(row[3]).items()}
    return Standing(row[0], row[1], Level(row[2]), grants, row[4])


def callers_to_learn() -> list[int]:
    """Returns the ids of the enabled callers to learn about.

    A caller at Observe is among them if it has LEARN_AFTER interactions and may go to Learn. A caller at another level
    is among them if the owner took a decision that was not learned from yet.
    """
    news = Observation.objects.filter(caller=OuterRef("pk"), pk__gt=OuterRef("learned_up_to"))
    learning = Exists(news) & ~Q(level=Level.OBSERVE)
    after = settings.LEARN_AFTER
    rising = Q(level=Level.OBSERVE, interaction_count__gte=after) if after else Q(pk__in=[])
    rows = Caller.objects.filter(learning | rising, enabled=True)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def drafts_untried() -> list[int]:
    """Returns the ids of the open drafts that were not tried yet."""
    rows = SkillDraft.objects.filter(state=SkillDraft.State.OPEN, previewed_at=None)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def evidence_of(drafts: Iterable[SkillDraft]) -> list[Observation]:
    """Returns the observations that `drafts` were learned from and that are still kept, the oldest first."""
    numbers = {number for draft in drafts for number in draft.evidence}
    return list(Observation.objects.filter(pk__in=numbers).order_by("id")) if numbers else []


def review_of_request(*, caller_id: int, request_digest: str) -> uuid.UUID | None:
    """Returns the id of the task in which the same request of a caller waits for the owner, else None."""
    waiting = Review.objects.filter(caller_id=caller_id, request_digest=request_digest, state=Review.State.PENDING)
    return waiting.values_list("task", flat=True).first()


def reviews_waiting(*, caller_id: int) -> int:
    """Returns the number of a caller's requests that wait for the owner, or for the caller's answer to the owner."""
    return Review.objects.filter(caller_id=caller_id, state__in=Review.WAITING).count()


def evidence_of_grant(*, caller_id: int, slug: str) -> list[int]:
    """Returns the ids of the observations that a grant rests on.

    They are the owner's grants in reviews, and the evidence of the drafts with the skill's id.
    """
    given = Observation.objects.filter(
        caller_id=caller_id, decision=Observation.Decision.GRANT, skill=slug, reversed_at=None
    )
    # Found by the skill's id, since the skill itself may just have been deleted.
    drafts = SkillDraft.objects.filter(caller_id=caller_id, slug=slug)
    learned = [number for evidence in drafts.values_list("evidence", flat=True) for number in evidence]
    return [*given.values_list("pk", flat=True), *learned]

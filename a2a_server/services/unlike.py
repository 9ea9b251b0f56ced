"""“Not like this”: the owner marks a task that was done without asking them, and its grant is revoked."""

from datetime import datetime

from django.db.models import Q

from a2a_server.models import TERMINAL, Task, TaskState
from trust.learning.services import not_like_this
from trust.models import CHAT, AuditEntry, Grant, Observation, Review
from volcanic.a2a_json import message_text
from volcanic.models import Turn
from volcanic.origins import task_origin


def granted_skill(task: Task) -> str:
    """Returns the id of the skill that an ended task ran on by a grant, "" where the owner can't mark the task.

    The grant may have been revoked since, by marking another task of the same skill.
    """
    # A rejected task did nothing. A task without an attempt was canceled before its run, or a built-in skill answered.
    if task.state not in TERMINAL or task.state == TaskState.REJECTED or not task.attempt:
        return ""
    # The assistant only read the request for the owner, and the task ended before its review was opened.
    if task.repeatable:
        return ""
    # The task has a review, so the owner decided on it. A run from before the review has its own report, and the owner
    # can revoke its grant.
    if Review.objects.filter(task=task.pk).exists() or _is_marked(task):
        return ""
    slug = task.skill or CHAT
    return slug if _was_granted(task, slug) else ""


def task_unlike(*, task: Task, text: str = "") -> str:
    """Marks a task with the owner's words `text`, and revokes the grant that the task ran on, if it still exists.

    Returns the skill's id, or "" if the task ran on no grant or is marked already.
    """
    slug = granted_skill(task)
    if slug:
        request = message_text(task.history[0]) if task.history else ""
        not_like_this(caller=task.caller, slug=slug, task=task.pk, request=request, text=text, ran_at=_ran_at(task))
    return slug


def unlike_told(task: Task, slug: str) -> str:
    """Returns a sentence for the owner on the result of marking a task."""
    if Grant.objects.filter(caller_id=task.caller_id, skill__slug=slug).exists():
        return f"Noted. {task.caller.name} keeps {slug}: you have granted it again since."
    return f"{slug} is no longer granted to {task.caller.name}."


def _is_marked(task: Task) -> bool:
    marks = Observation.objects.filter(caller_id=task.caller_id, decision=Observation.Decision.UNLIKE, reversed_at=None)
    return marks.filter(task=task.pk).exists()


def _was_granted(task: Task, slug: str) -> bool:
    """Returns whether the caller had a grant of the skill: it has one now, or one was revoked after the task came."""
    had = Grant.objects.filter(caller_id=task.caller_id, skill__slug=slug, created_at__lte=task.status_at)
    if had.exists():
        return True
    revoked = AuditEntry.objects.filter(caller_id=task.caller_id, action="grant.revoked", at__gte=task.created_at)
    return revoked.filter(Q(subject=slug) | Q(subject__startswith=f"{slug} (")).exists()


def _ran_at(task: Task) -> datetime:
    """Returns the time at which the task's last run began; without a transcript, the time at which the task ended."""
    turns = Turn.objects.filter(session=task.session_id, origin=task_origin(task.pk))
    return turns.order_by("-id").values_list("started_at", flat=True).first() or task.status_at

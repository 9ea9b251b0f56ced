"""“Not like this”: the owner takes back what let the assistant do a task without asking them."""

from datetime import datetime

from django.db.models import Q

from a2a_server.models import TERMINAL, Task, TaskState
from trust.learning.services import not_like_this
from trust.models import CHAT, AuditEntry, Grant, Observation, Review
from volcanic.a2a_json import message_text
from volcanic.models import Turn
from volcanic.origins import task_origin


def granted_skill(task: Task) -> str:
    """Returns the id of the skill that a task ran on without the owner, if it has ended and they have not marked it
    yet; "" else. The grant may be gone since: others of its tasks ran at the same time."""
    # Rejected: nothing was done. Without a run: a built-in skill answered, or it was canceled before.
    if task.state not in TERMINAL or task.state == TaskState.REJECTED or not task.attempt:
        return ""
    # It was read for the owner, and ended before they had it before them.
    if task.repeatable:
        return ""
    # The owner had it before them. What ran before that was reported by itself, and its grant can be revoked.
    if Review.objects.filter(task=task.pk).exists() or _is_marked(task):
        return ""
    slug = task.skill or CHAT
    return slug if _was_granted(task, slug) else ""


def task_unlike(*, task: Task, text: str = "") -> str:
    """Marks what a task did, with the owner's words on it, and takes the grant back that it ran on, if that is still
    there. Returns the skill's id, "" if it ran on no grant or is marked already."""
    slug = granted_skill(task)
    if slug:
        request = message_text(task.history[0]) if task.history else ""
        not_like_this(caller=task.caller, slug=slug, task=task.pk, request=request, text=text, ran_at=_ran_at(task))
    return slug


def unlike_told(task: Task, slug: str) -> str:
    """Returns a sentence about what came of marking a task."""
    if Grant.objects.filter(caller_id=task.caller_id, skill__slug=slug).exists():
        return f"Noted. {task.caller.name} keeps {slug}: you granted it anew since."
    return f"{slug} is no longer granted to {task.caller.name}."


def _is_marked(task: Task) -> bool:
    marks = Observation.objects.filter(caller_id=task.caller_id, decision=Observation.Decision.UNLIKE, reversed_at=None)
    return marks.filter(task=task.pk).exists()


def _was_granted(task: Task, slug: str) -> bool:
    """Tells whether the caller had a grant of the skill: it has it, or it was taken back after the task came."""
    had = Grant.objects.filter(caller_id=task.caller_id, skill__slug=slug, created_at__lte=task.status_at)
    if had.exists():
        return True
    revoked = AuditEntry.objects.filter(caller_id=task.caller_id, action="grant.revoked", at__gte=task.created_at)
    return revoked.filter(Q(subject=slug) | Q(subject__startswith=f"{slug} (")).exists()


def _ran_at(task: Task) -> datetime:
    """Returns when the task last ran; when it ended, where no transcript tells."""
    turns = Turn.objects.filter(session=task.session_id, origin=task_origin(task.pk))
    return turns.order_by("-id").values_list("started_at", flat=True).first() or task.status_at

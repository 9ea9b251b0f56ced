"""“Not like this”: the owner takes back what let the assistant do a task without asking them."""

from a2a_server.models import TERMINAL, Task, TaskState
from a2a_server.turns import message_text
from trust.learning.services import not_like_this
from trust.models import CHAT, Grant, Review


def granted_skill(task: Task) -> str:
    """Returns the id of the skill that a task ran on without the owner, if it has ended and the caller still has the
    grant; "" else."""
    # Rejected: nothing was done. Without a run: a built-in skill answered, or it was canceled before.
    if task.state not in TERMINAL or task.state == TaskState.REJECTED or not task.attempt:
        return ""
    slug = task.skill or CHAT
    if not Grant.objects.filter(caller_id=task.caller_id, skill__slug=slug).exists():
        return ""
    # What was put before the owner was done, if it was, by their decision.
    return "" if Review.objects.filter(task=task.pk).exists() else slug


def task_unlike(*, task: Task, text: str = "") -> str:
    """Takes the grant back that a task ran on, with the owner's words on what was done. Returns the skill's id, "" if
    there was no such grant."""
    slug = granted_skill(task)
    request = message_text(task.history[0]) if task.history else ""
    taken = bool(slug) and not_like_this(caller=task.caller, slug=slug, task=task.pk, request=request, text=text)
    return slug if taken else ""

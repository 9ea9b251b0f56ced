"""The audit: a log of changes with actor, caller and reason. The database lets rows be added, and never changed."""

from django.db import models
from django.utils import timezone

from volcanic.models import Workspace


class AuditEntry(models.Model):
    """One change to keys, levels, grants, skills or reviews, or one refusal."""

    # Without a constraint, since an entry outlives its workspace and must not change when the workspace is deleted.
    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, null=True, db_constraint=False, related_name="+"
    )
    at = models.DateTimeField(default=timezone.now)
    # The actor: `owner olivia`, `shell root`, `caller friend`, `system`.
    actor = models.CharField(max_length=150)
    # The action, namespaced: `key.created`, `review.approve`.
    action = models.CharField(max_length=40)
    # The id and name of the caller concerned.
    caller_id = models.BigIntegerField(null=True)
    caller = models.CharField(max_length=40, blank=True)
    # The object of the action: a skill's id, a key's last characters, a task's id.
    subject = models.CharField(max_length=200, blank=True)
    reason = models.TextField(blank=True)
    request_id = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["workspace", "-id"], name="audit_of_workspace"),
            models.Index(fields=["caller_id", "-id"], name="audit_of_caller"),
            # Finds the last entry of one action.
            models.Index(fields=["caller_id", "action", "-id"], name="audit_of_caller_action"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.caller} {self.subject}".strip()

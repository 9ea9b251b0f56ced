"""Memories that the assistant keeps for good, and working notes that it keeps for a while."""

from django.db import models
from django.utils import timezone

from volcanic.models.workspaces import Workspace
from volcanic.text import cut, one_way


class Memory(models.Model):
    """Something the assistant was told to remember, beside what is in MEMORY.md.

    What comes out of a caller's conversation is that caller's word, and stays marked as such until the owner adopts it.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memories")
    text = models.TextField()
    # Whose conversation it comes from, as in Session.scope without the context: a2a-<caller's primary key>. Empty: the
    # owner's own, or adopted.
    source = models.CharField(max_length=60, blank=True, editable=False)
    # The caller's name at that time, to show.
    caller = models.CharField(max_length=40, blank=True, editable=False)
    # What the turn was run for, as in Turn.origin.
    origin = models.CharField(max_length=100, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name_plural = "memories"
        indexes = [
            # `recall`, and how much a caller has had remembered.
            models.Index(fields=["workspace", "source", "-id"], name="memory_of_source"),
            # The admin: the newest first.
            models.Index(fields=["workspace", "-id"], name="memory_recent_in_workspace"),
        ]

    def __str__(self) -> str:
        return cut(one_way(self.text), 80)


class WorkingNote(models.Model):
    """Something the assistant keeps for a while: notes on a request under `a2a-inbox/<task>`, say."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="working_notes")
    namespace = models.CharField(max_length=100)
    key = models.CharField(max_length=60)
    text = models.TextField()
    updated_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "namespace", "key"], name="note_once_in_namespace"),
        ]
        indexes = [models.Index(fields=["expires_at"], name="note_expiring")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.key}"

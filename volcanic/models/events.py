"""The log of what is new for an owner."""

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.utils import timezone

from volcanic.models.workspaces import Workspace


class Event(models.Model):
    """One thing that an owner's page would show: written in the transaction of the change, never changed, pruned.

    See `volcanic.events`, which alone reads and writes it.
    """

    # Not enforced by the database: to check it would lock the workspace's row at each change of each task.
    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="events", db_constraint=False, db_index=False
    )
    # The number in the workspace's log; null until somebody reads.
    number = models.PositiveBigIntegerField(null=True)
    # `task`, `review`, `draft`, `notification`, `prompt`.
    kind = models.CharField(max_length=20)
    # The key of the row that it is about.
    subject = models.CharField(max_length=40)
    payload = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # Resuming after a number.
            models.UniqueConstraint(
                fields=["workspace", "number"],
                condition=models.Q(number__isnull=False),
                name="event_number_unique_in_workspace",
            ),
        ]
        indexes = [
            # What has no number yet.
            models.Index(
                fields=["workspace", "id"], condition=models.Q(number__isnull=True), name="event_without_number"
            ),
            # Pruning.
            BrinIndex(fields=["created_at"], name="event_prunable"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class EventLog(models.Model):
    """The last number that was given out in a workspace's log."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, primary_key=True, related_name="event_log")
    last_number = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"event log of workspace {self.workspace_id}"

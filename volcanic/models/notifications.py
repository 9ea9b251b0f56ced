"""Notifications for owners, and their deliveries to the owner's channels."""

from django.db import models
from django.utils import timezone

from volcanic.fields import EncryptedTextField
from volcanic.models.leased import LeasedRow
from volcanic.models.sessions import Session
from volcanic.models.workspaces import Workspace
from volcanic.text import cut, one_way


class Notification(models.Model):
    """A line for the owner: told when they are idle, together with others that wait."""

    class Kind(models.TextChoices):
        """What it tells of."""

        NOTE = "note", "Note of the assistant"
        MESSAGE = "message", "Message of a caller"
        REVIEW = "review", "Request to review"
        REPORT = "report", "Report of what was done"
        DRAFT = "draft", "Draft of a skill"
        EXPIRING = "expiring", "Review about to expire"
        WARNING = "warning", "Warning"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="notifications")
    session = models.ForeignKey(Session, on_delete=models.SET_NULL, null=True, related_name="notifications")
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.NOTE)
    # The A2A task that it is about, if any.
    task = models.UUIDField(null=True, blank=True)
    origin = models.CharField(max_length=100, blank=True)
    caller = models.CharField(max_length=40, blank=True)
    text = models.TextField()
    # Is told at once, and not when the owner is idle.
    urgent = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    # When the deliveries to the owner's channels were made. A delivery that fails changes nothing here.
    delivered_at = models.DateTimeField(null=True, blank=True)
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["workspace", "-id"], name="notification_recent"),
            # The owner's inbox, and how much of a caller's waits there, of one kind: reports may be many.
            models.Index(
                fields=["workspace", "caller", "kind"],
                condition=models.Q(read_at__isnull=True),
                name="notification_unread_of_kind",
            ),
            # What the owner has not read about a task, when it needs them no more.
            models.Index(
                fields=["task"],
                condition=models.Q(task__isnull=False, read_at__isnull=True),
                name="notification_unread_of_task",
            ),
            # What is to be told.
            models.Index(
                fields=["workspace", "id"], condition=models.Q(delivered_at__isnull=True), name="notification_untold"
            ),
        ]

    def __str__(self) -> str:
        return cut(one_way(self.text), 80)


class NotificationDelivery(LeasedRow):
    """A text on its way to one channel of the owner. Each channel has its own, so that no channel waits for another."""

    class State(models.TextChoices):
        """What became of it."""

        PENDING = "pending", "Pending"
        DELIVERED = "delivered", "Delivered"
        FAILED = "failed", "Given up"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="notification_deliveries")
    # How the channel is shown: its address without passwords and tokens.
    channel = models.CharField(max_length=200)
    url = EncryptedTextField(editable=False)
    title = models.CharField(max_length=200)
    text = models.TextField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name, verbose_name_plural = "delivery", "deliveries"
        indexes = [
            # The queue of a channel, and the sweep over what is due.
            models.Index(
                fields=["workspace", "channel", "next_try_at"],
                condition=models.Q(state="pending"),
                name="notification_pending",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.title} to {self.channel}"

"""The tasks that callers gave us, and the log of what happened to each."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from trust.models import Caller
from volcanic.fields import EncryptedTextField
from volcanic.models import LeasedRow, Session


class TaskState(models.TextChoices):
    """The states of a task: those of the specification (4.1.3), in lower case and without the prefix."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    AUTH_REQUIRED = "auth_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"


RUNNING = (TaskState.SUBMITTED, TaskState.WORKING)
INTERRUPTED = (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED)
TERMINAL = (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED)


class Task(models.Model):
    """An A2A task. JSON columns hold the wire's 1.0 form, so that reading a task is no translation.

    Only `a2a_server.services` writes a task's state.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    caller = models.ForeignKey(Caller, on_delete=models.CASCADE, related_name="tasks")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="tasks")
    context_id = models.CharField(max_length=100)
    state = models.CharField(max_length=20, choices=TaskState.choices)
    status_message = models.JSONField(null=True, blank=True)
    status_at = models.DateTimeField(default=timezone.now)
    history = models.JSONField(default=list)
    metadata = models.JSONField(null=True, blank=True)
    accepted_output_modes = models.JSONField(default=list, blank=True)
    hops = models.PositiveIntegerField(default=0)
    # The number of the last event of this task.
    seq = models.PositiveIntegerField(default=0)
    # Counts the runs. Each write of a run names its attempt, so that a worker presumed dead can't write any more.
    attempt = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=100, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    enqueued_at = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    # The keys that its messages came with, where they came with any: is one revoked, it does not run any more.
    keys = ArrayField(models.BigIntegerField(), default=list, db_default=[], editable=False)
    # Of what its first message asks for, whatever the message's id; see trust.digests.
    request_digest = models.CharField(max_length=64, blank=True, db_default="", editable=False)
    # The id of the skill that it last ran on, which an answer to a question of that run goes on with; empty for a plain
    # request.
    skill = models.CharField(max_length=64, blank=True, db_default="", editable=False)
    # Its run only reads: should the worker die, another does it again.
    repeatable = models.BooleanField(default=False, db_default=False, editable=False)
    # How often that was begun, for what waits now.
    retries = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    # What the run that is going on is for and has used so far: what the owner is told should it be broken off.
    pending_report = models.TextField(blank=True, db_default="", editable=False)
    # The owner wants to keep it: pruning passes it over.
    pinned = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=TaskState.values), name="task_state_listed"),
            # Refuses a second run in a context ("context busy").
            models.UniqueConstraint(
                fields=["session"], condition=Q(state__in=["submitted", "working"]), name="task_one_running_per_session"
            ),
            # A run holds a lease; nothing else does.
            models.CheckConstraint(
                condition=Q(state="working", lease_expires_at__isnull=False)
                | (~Q(state="working") & Q(lease_expires_at__isnull=True)),
                name="task_lease_while_working",
            ),
        ]
        indexes = [
            # ListTasks: a caller's tasks, newest status first.
            models.Index(fields=["caller", "-status_at", "-id"], name="task_list_of_caller"),
            # The admin: everybody's tasks, newest first.
            models.Index(fields=["-status_at", "-id"], name="task_recent"),
            # ListTasks with contextId.
            models.Index(fields=["caller", "context_id", "-status_at", "-id"], name="task_list_of_context"),
            # The sweep: runs whose lease has passed, submitted tasks that nobody claimed.
            models.Index(fields=["lease_expires_at"], condition=Q(state="working"), name="task_expired_runs"),
            models.Index(fields=["enqueued_at"], condition=Q(state="submitted"), name="task_unclaimed"),
            # Quotas: how much of a caller's is running or waits for somebody.
            models.Index(
                fields=["caller", "context_id", "state"],
                condition=Q(state__in=["submitted", "working", "input_required", "auth_required"]),
                name="task_open_of_caller",
            ),
            # Pruning: what ended long ago.
            models.Index(
                fields=["status_at"],
                condition=Q(state__in=["completed", "failed", "canceled", "rejected"], pinned=False),
                name="task_prunable",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class Artifact(models.Model):
    """One output of a task. Apart from the task's row, so that a change of status never rewrites large bytes."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="artifacts")
    artifact_id = models.CharField(max_length=100)
    payload = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "artifact_id"], name="artifact_id_unique_in_task"),
        ]

    def __str__(self) -> str:
        return self.artifact_id


class TaskEvent(models.Model):
    """One line of a task's append-only log, in the order every stream shows: a `StreamResponse` in JSON."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    payload = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "seq"], name="event_seq_unique_in_task"),
        ]
        ordering = ["task", "seq"]

    def __str__(self) -> str:
        return f"{self.task_id} #{self.seq}"


class ReceivedMessage(models.Model):
    """A message that was accepted, so that the same one sent again within a while is not acted on twice."""

    caller = models.ForeignKey(Caller, on_delete=models.CASCADE, related_name="+")
    # Of the whole message, its id included: other content under the same id is another message.
    digest = models.CharField(max_length=64)
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="+")
    received_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["caller", "digest"], name="message_received_once"),
        ]

    def __str__(self) -> str:
        return self.digest


class InboundFile(models.Model):
    """A file that a message brought, from its acceptance until it is in the workspace's inbox.

    The web process keeps the bytes here, in the transaction that makes the task; the worker writes the file and lets
    the bytes go. So no file is in an inbox without a task, and no task waits for a file that was lost.
    """

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="files")
    position = models.PositiveIntegerField()
    filename = models.CharField(max_length=255, blank=True)
    declared_type = models.CharField(max_length=255, blank=True)
    # One of the two, until the file is stored.
    content = models.BinaryField(null=True)
    url = models.TextField(blank=True)
    # Where it lies in the workspace, its true type and size, once it is stored.
    path = models.TextField(blank=True)
    media_type = models.CharField(max_length=255, blank=True)
    size = models.PositiveBigIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "position"], name="file_position_unique_in_task"),
        ]

    def __str__(self) -> str:
        return self.path or self.filename or f"file {self.position}"


class PushConfig(models.Model):
    """A webhook that a caller registered for a task."""

    class State(models.TextChoices):
        ACTIVE = "active"
        FAILING = "failing"
        STOPPED = "stopped"

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="push_configs")
    config_id = models.CharField(max_length=100)
    url = models.TextField()
    token = EncryptedTextField(null=True, blank=True)
    auth_scheme = models.CharField(max_length=50, blank=True)
    auth_credentials = EncryptedTextField(null=True, blank=True)
    # The protocol version that it was registered with, in which it is told.
    version = models.CharField(max_length=3, default="1.0")
    state = models.CharField(max_length=10, choices=State.choices, default=State.ACTIVE)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "webhook"
        constraints = [
            models.UniqueConstraint(fields=["task", "config_id"], name="push_config_id_unique_in_task"),
            models.CheckConstraint(
                condition=Q(state__in=["active", "failing", "stopped"]), name="push_config_state_listed"
            ),
        ]

    def __str__(self) -> str:
        return self.config_id


class PushDelivery(LeasedRow):
    """One call that a webhook is owed: the task as it was at event `seq`. Written with that event."""

    class State(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"

    config = models.ForeignKey(PushConfig, on_delete=models.CASCADE, related_name="deliveries")
    seq = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    last_status = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "push deliveries"
        constraints = [
            models.UniqueConstraint(fields=["config", "seq"], name="delivery_seq_unique_in_config"),
            models.CheckConstraint(condition=Q(state__in=["pending", "delivered"]), name="delivery_state_listed"),
        ]
        indexes = [
            # The next delivery of a config, and the sweep over what is due.
            models.Index(fields=["config", "seq"], condition=Q(state="pending"), name="delivery_pending"),
        ]

    def __str__(self) -> str:
        return f"{self.config} #{self.seq}"

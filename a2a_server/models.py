"""Models of the A2A server: tasks with artifacts, events and files, received messages, webhooks and deliveries."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from trust.models import Caller
from volcanic.fields import EncryptedTextField
from volcanic.models import LeasedRow, Session


class TaskState(models.TextChoices):
    """The states of a task: the names of the specification (4.1.3) in lower case, without the prefix TASK_STATE_."""

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
    """An A2A task. JSON columns hold the 1.0 wire form, so that a task is read without conversion.

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
    # The number of runs so far, and the fencing number of the present run. Each write of a run names its attempt, so
    # that a worker presumed dead can't write any more.
    attempt = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=100, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    enqueued_at = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    # The ids of the API keys that the task's messages came with. A task with a revoked key does not run any more.
    keys = ArrayField(models.BigIntegerField(), default=list, db_default=[], editable=False)
    # The digest of the request in the task's first message, without the message's id; see trust.digests.
    request_digest = models.CharField(max_length=64, blank=True, db_default="", editable=False)
    # The id of the skill of the last run, "" for a plain request. An answer to a question of that run uses it again.
    skill = models.CharField(max_length=64, blank=True, db_default="", editable=False)
    # The present run only reads, so another worker may repeat the run should the worker die.
    repeatable = models.BooleanField(default=False, db_default=False, editable=False)
    # The number of repeatable runs begun since the last message or decision. Limits their repetition.
    retries = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    # The report that the owner gets should the present run be ended from outside: the request, and the tools and files
    # used so far.
    pending_report = models.TextField(blank=True, db_default="", editable=False)
    # The owner wants to keep the task: pruning never deletes it.
    pinned = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=TaskState.values), name="task_state_listed"),
            # Refuses a second run in a context: the error "context busy".
            models.UniqueConstraint(
                fields=["session"], condition=Q(state__in=["submitted", "working"]), name="task_one_running_per_session"
            ),
            # A working task has a lease, and a task in any other state has no lease.
            models.CheckConstraint(
                condition=Q(state="working", lease_expires_at__isnull=False)
                | (~Q(state="working") & Q(lease_expires_at__isnull=True)),
                name="task_lease_while_working",
            ),
        ]
        indexes = [
            # For ListTasks: a caller's tasks, the newest status first.
            models.Index(fields=["caller", "-status_at", "-id"], name="task_list_of_caller"),
            # For the admin: the tasks of all callers, the newest status first.
            models.Index(fields=["-status_at", "-id"], name="task_recent"),
            # For ListTasks with contextId.
            models.Index(fields=["caller", "context_id", "-status_at", "-id"], name="task_list_of_context"),
            # For the sweep: runs whose lease has passed, and submitted tasks that no worker claimed.
            models.Index(fields=["lease_expires_at"], condition=Q(state="working"), name="task_expired_runs"),
            models.Index(fields=["enqueued_at"], condition=Q(state="submitted"), name="task_unclaimed"),
            # For quotas: a caller's tasks that run or wait for somebody.
            models.Index(
                fields=["caller", "context_id", "state"],
                condition=Q(state__in=["submitted", "working", "input_required", "auth_required"]),
                name="task_open_of_caller",
            ),
            # For pruning: tasks that ended long ago and are not pinned.
            models.Index(
                fields=["status_at"],
                condition=Q(state__in=["completed", "failed", "canceled", "rejected"], pinned=False),
                name="task_prunable",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class Artifact(models.Model):
    """One output of a task. In a table of its own, so that a change of the task's status never rewrites a large row."""

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
    """One event of a task's append-only log: a `StreamResponse` in JSON. All streams send events in order of `seq`."""

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
    """A message that was accepted. The same message again within DUPLICATE_WINDOW_SECONDS makes no second task."""

    caller = models.ForeignKey(Caller, on_delete=models.CASCADE, related_name="+")
    # The digest of the whole message, its id included: other content under the same id is another message.
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
    """A file that a message brought, before and after it is written into the workspace's inbox.

    The web process stores the bytes here, in the transaction that makes the task. The worker writes the file into the
    inbox and deletes the bytes here. So no file is in an inbox without a task, and no task waits for a lost file.
    """

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="files")
    position = models.PositiveIntegerField()
    filename = models.CharField(max_length=255, blank=True)
    declared_type = models.CharField(max_length=255, blank=True)
    # The bytes, or the address to fetch them from. `content` is null after the file is in the inbox.
    content = models.BinaryField(null=True)
    url = models.TextField(blank=True)
    # The path in the workspace, the detected media type, and the size in bytes, after the file is in the inbox.
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
    # The protocol version of the registration. Deliveries use the same version.
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
    """One delivery to a webhook: the task as it was at event `seq`. Inserted with that event."""

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
            # For the next delivery of a config, and for the sweep over due deliveries.
            models.Index(fields=["config", "seq"], condition=Q(state="pending"), name="delivery_pending"),
        ]

    def __str__(self) -> str:
        return f"{self.config} #{self.seq}"

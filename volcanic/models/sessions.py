"""Sessions, the turns in them, and the prompts that wait in owners' sessions."""

from django.db import models
from django.utils import timezone

from volcanic.models.workspaces import Workspace
from volcanic.text import cut, one_way


class Session(models.Model):
    """One conversation of the assistant: the owner's own, or an isolated one for each caller and context."""

    class Kind(models.TextChoices):
        OWNER = "owner", "Owner"
        INBOUND = "inbound", "Inbound"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="sessions")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    # Whose conversation it is: a2a-<caller's primary key>_<contextId>. The key and not the name, so that a caller
    # made anew under an old name does not inherit the old one's conversations.
    scope = models.CharField(max_length=200)
    title = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_active_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            # Finds or makes the session of a message, in one statement.
            models.UniqueConstraint(fields=["workspace", "scope"], name="session_scope_unique"),
            models.CheckConstraint(condition=models.Q(kind__in=["owner", "inbound"]), name="session_kind_listed"),
        ]
        indexes = [
            models.Index(fields=["workspace", "-last_active_at"], name="session_recent_in_workspace"),
        ]

    def __str__(self) -> str:
        return one_way(self.title or self.scope)


class Turn(models.Model):
    """One finished run of the agent loop in a session: its prompt and its model messages.

    Together the turns of a session are its transcript; an idle session holds nothing else.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="turns")
    # What the turn was run for: `task:<uuid>` for an A2A task, `console`, `chat`, … for the owner.
    origin = models.CharField(max_length=100, blank=True)
    # Whose question `pending` is: the next turn with the same asker answers it. An A2A task is its own asker; in an
    # owner's session all of the owner's messages have one.
    asker = models.CharField(max_length=100, blank=True, db_default="")
    prompt = models.TextField()
    # The new messages of this turn, as its runner writes them.
    messages = models.JSONField(default=list)
    # An open question, or tool calls that need a yes, which the next turn of the same asker answers; null for none.
    pending = models.JSONField(null=True, blank=True)
    state = models.CharField(max_length=20)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["session", "id"], name="turn_transcript_of_session"),
        ]

    def __str__(self) -> str:
        return f"{self.origin or 'turn'} ({self.state})"


class Prompt(models.Model):
    """A message to the assistant in an owner's session: it waits in the session's queue, runs once, and is answered.

    Only `volcanic.turns.prompts` writes its state.
    """

    class Kind(models.TextChoices):
        """Who speaks."""

        MESSAGE = "message", "Message of the owner"
        FOLLOW_UP = "follow_up", "Follow-up"

    class State(models.TextChoices):
        """queued → running → one of the others. `input_required`: the turn ended with a question to the owner."""

        QUEUED = "queued"
        RUNNING = "running"
        COMPLETED = "completed"
        INPUT_REQUIRED = "input_required"
        FAILED = "failed"
        STOPPED = "stopped"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="prompts")
    # Where it comes from: `chat` for the command line, `console`, `watch:<id>`, …
    origin = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.MESSAGE)
    text = models.TextField()
    # Files that come along: paths in the workspace.
    files = models.JSONField(default=list, blank=True)
    state = models.CharField(max_length=20, choices=State.choices, default=State.QUEUED)
    # The answer, as far as it is written; of a failed prompt what went wrong.
    answer = models.TextField(blank=True)
    # The fencing number: counts the runs, and each write of a run names it.
    attempt = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=100, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["queued", "running", "completed", "input_required", "failed", "stopped"]),
                name="prompt_state_listed",
            ),
            # One at a time: the others wait behind it.
            models.UniqueConstraint(
                fields=["session"], condition=models.Q(state="running"), name="prompt_one_running_per_session"
            ),
            # A run holds a lease; nothing else does.
            models.CheckConstraint(
                condition=models.Q(state="running", lease_expires_at__isnull=False)
                | (~models.Q(state="running") & models.Q(lease_expires_at__isnull=True)),
                name="prompt_lease_while_running",
            ),
        ]
        indexes = [
            # The log of a conversation.
            models.Index(fields=["session", "id"], name="prompt_log_of_session"),
            # The queue of a session, and the sweep over what waits.
            models.Index(fields=["session", "id"], condition=models.Q(state="queued"), name="prompt_queue_of_session"),
            # The sweep: runs whose lease has passed.
            models.Index(fields=["lease_expires_at"], condition=models.Q(state="running"), name="prompt_expired_runs"),
        ]

    def __str__(self) -> str:
        return cut(one_way(self.text), 80)

"""The assistant's tables: workspaces, their conversations, the turns in them."""

from pathlib import Path

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from volcanic.fields import EncryptedTextField
from volcanic.text import cut, one_way


class Workspace(models.Model):
    """One owner's assistant: settings plus a folder with AGENTS.md / CLAUDE.md, PERSONA.md, MEMORY.md and `inbox/`."""

    slug = models.CharField(
        max_length=40, unique=True, validators=[RegexValidator(r"^[a-z0-9-]{1,40}$", "Use a-z, 0-9 and -.")]
    )
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="workspaces")
    card_name = models.CharField(
        max_length=200, blank=True, help_text="Name on the extended agent card. Empty: CARD_NAME."
    )
    card_description = models.TextField(
        blank=True,
        help_text="Description on the extended agent card. Empty: the first line of PERSONA.md, else CARD_DESCRIPTION.",
    )
    # Apprise URLs, one a line: where notifications go besides the owner's session. They hold tokens and passwords.
    notify_urls = EncryptedTextField("notification channels", null=True, blank=True)
    notify_owner = models.BooleanField(
        "notifications",
        default=True,
        help_text="The assistant may leave you notifications while it works for a caller.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.slug

    @property
    def path(self) -> Path:
        """The workspace's folder."""
        return Path(settings.WORKSPACES_DIR) / self.slug


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
    # A turn of the owner's runs here, until then at most.
    busy_until = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        constraints = [
            # Finds or makes the session of a message, in one statement.
            models.UniqueConstraint(fields=["workspace", "scope"], name="session_scope_unique"),
            models.CheckConstraint(condition=models.Q(kind__in=["owner", "inbound"]), name="session_kind_listed"),
        ]
        indexes = [
            models.Index(fields=["workspace", "-last_active_at"], name="session_recent_in_workspace"),
            # Whether the owner is busy: of a workspace's many sessions, hardly any.
            models.Index(
                fields=["workspace"], condition=models.Q(busy_until__isnull=False), name="session_busy_in_workspace"
            ),
        ]

    def __str__(self) -> str:
        return one_way(self.title or self.scope)


class Turn(models.Model):
    """One finished run of the agent loop in a session: its prompt and its model messages.

    Together the turns of a session are its transcript; an idle session holds nothing else.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="turns")
    # What the turn was run for: `task:<uuid>` for an A2A task.
    origin = models.CharField(max_length=100, blank=True)
    prompt = models.TextField()
    # The new messages of this turn, as its runner writes them.
    messages = models.JSONField(default=list)
    # A question to the other side that the next turn of the same origin answers; null when nothing is open.
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


class Presence(models.Model):
    """When an owner last did something: in the console, the admin or the owner's API."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True)
    last_active_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.user}: {self.last_active_at:%Y-%m-%d %H:%M}"


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
    # When it went out to the owner's channels: once, whatever becomes of each channel.
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


class NotificationDelivery(models.Model):
    """A text on its way to one channel of an owner's. Each channel has its own, so that none waits for another."""

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
    attempts = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(default=timezone.now)
    last_error = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name, verbose_name_plural = "delivery", "deliveries"
        indexes = [
            models.Index(fields=["next_try_at"], condition=models.Q(state="pending"), name="notification_due"),
        ]

    def __str__(self) -> str:
        return f"{self.title} to {self.channel}"

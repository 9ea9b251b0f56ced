"""The assistant's tables: workspaces, their conversations, the turns in them."""

from pathlib import Path

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone


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
        return self.title or self.scope


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
        return self.text if len(self.text) <= 80 else f"{self.text[:79]}…"


class Notification(models.Model):
    """A line that the assistant left for the owner while it worked for a caller."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="notifications")
    session = models.ForeignKey(Session, on_delete=models.SET_NULL, null=True, related_name="notifications")
    origin = models.CharField(max_length=100, blank=True)
    caller = models.CharField(max_length=40, blank=True)
    text = models.TextField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["workspace", "-id"], name="notification_recent"),
            # The owner's inbox, and how much of a caller's waits there.
            models.Index(
                fields=["workspace", "caller"], condition=models.Q(read_at__isnull=True), name="notification_unread"
            ),
        ]

    def __str__(self) -> str:
        return self.text if len(self.text) <= 80 else f"{self.text[:79]}…"

"""Callers, their keys and identities, and the refused calls that belong to no caller."""

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from volcanic.fields import EncryptedTextField
from volcanic.models import Workspace

NAME_PATTERN = r"^[a-z0-9-]{1,40}$"


class Level(models.TextChoices):
    """A caller's trust level, from which policy chooses the handling of its requests."""

    OBSERVE = "observe", "Observe"
    LEARN = "learn", "Learn"
    PROPOSE = "propose", "Propose"
    ACT = "act", "Act"

    @property
    def rank(self) -> int:
        """The position of the level, from 0 for Observe to 3 for Act."""
        return list(Level).index(self)


class Caller(models.Model):
    """An agent that calls the assistant."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="callers")
    name = models.CharField(max_length=40, validators=[RegexValidator(NAME_PATTERN, "Use a-z, 0-9 and -, at most 40.")])
    level = models.CharField(max_length=10, choices=Level.choices, default=Level.OBSERVE)
    enabled = models.BooleanField(default=True)
    note = models.TextField(blank=True)
    # Signs the notifications to this caller's webhooks. Shown once. Stored encrypted, not as a digest, since it signs.
    webhook_secret = EncryptedTextField(null=True, blank=True, editable=False)
    # The limits of this caller. Empty: the limits of the settings.
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)
    max_running_tasks = models.PositiveIntegerField(null=True, blank=True)
    max_open_contexts = models.PositiveIntegerField(null=True, blank=True)
    max_inbox_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    max_stored_tasks = models.PositiveIntegerField(null=True, blank=True)
    # The tasks that it has stored, as of the last count, and the bytes of its files. Written by a2a_server.quotas.
    stored_tasks = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    inbox_bytes = models.PositiveBigIntegerField(default=0, db_default=0, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    first_seen_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_interaction_at = models.DateTimeField(null=True, blank=True, editable=False)
    interaction_count = models.PositiveBigIntegerField(default=0, editable=False)
    # The id of the latest Observation that was learned from.
    learned_up_to = models.PositiveBigIntegerField(default=0, db_default=0, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="caller_name_unique_in_workspace"),
            models.CheckConstraint(condition=Q(name__regex=NAME_PATTERN), name="caller_name_well_formed"),
            models.CheckConstraint(condition=Q(level__in=Level.values), name="caller_level_listed"),
        ]

    def __str__(self) -> str:
        return self.name


class CallerKey(models.Model):
    """One key of a caller. Only its digest is kept: the key is shown once, when it is made."""

    caller = models.ForeignKey(Caller, on_delete=models.CASCADE, related_name="keys")
    # Unique across all workspaces: one key can never match two callers.
    digest = models.CharField(max_length=64, unique=True)
    # The key's last four characters, for keys of 12 and more.
    hint = models.CharField(max_length=4, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    def __str__(self) -> str:
        return f"…{self.hint}" if self.hint else "key"

    @property
    def usable(self) -> bool:
        """True if the key lets its caller in now."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())


class CallerIdentity(models.Model):
    """The id of a caller at an issuer that verifies it, such as an identity provider."""

    caller = models.ForeignKey(Caller, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    agent_id = models.CharField("agent id", max_length=255)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name, verbose_name_plural = "identity", "identities"
        constraints = [
            # Across all workspaces: one identity can never stand for two callers.
            models.UniqueConstraint(fields=["issuer", "agent_id"], name="identity_of_one_caller"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} of {self.issuer}"


class RefusedCall(models.Model):
    """Calls refused without a known caller: one row with a count for each source, reason and path."""

    source = models.CharField(max_length=64)
    reason = models.CharField(max_length=40)
    path = models.CharField(max_length=100)
    count = models.PositiveBigIntegerField(default=1)
    first_seen_at = models.DateTimeField("first seen", default=timezone.now)
    last_seen_at = models.DateTimeField("last seen", default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "reason", "path"], name="refused_call_collapsed"),
        ]
        indexes = [models.Index(fields=["-last_seen_at"], name="refused_call_newest")]

    def __str__(self) -> str:
        return f"{self.reason} from {self.source or 'somewhere'}"

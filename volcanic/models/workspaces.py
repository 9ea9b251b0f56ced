"""Workspaces, and the presence of their owners."""

from pathlib import Path

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from volcanic.fields import EncryptedTextField


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


class Presence(models.Model):
    """When an owner last did something: in the console, the admin or the owner's API."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True)
    last_active_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.user}: {self.last_active_at:%Y-%m-%d %H:%M}"

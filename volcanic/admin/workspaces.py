"""Admin screen of workspaces: the agent card, the folder, the channels for notifications."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import ForeignKey, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldBooleanSwitchWidget

from volcanic.acting import current
from volcanic.admin.base import OwnedAdmin, display, is_superuser
from volcanic.admin.forms import ShownForm
from volcanic.aio.loop import run_on_loop
from volcanic.models import Workspace
from volcanic.notifications.apprise_urls import channel_lines, channel_shown, channels_check
from volcanic.notifications.sending import channel_send_apart
from volcanic.notifications.workspace_channels import workspace_set_channels
from volcanic.services import workspace_create

logger = logging.getLogger(__name__)

TEST_SECONDS = 15.0
TEST_TEXT = "This is a test. Your assistant reaches you here."
CHANNELS, REMOVE = "new_channels", "remove_channels"
# Allows one test at a time, since a test starts one process for each channel.
_testing = threading.Lock()


class WorkspaceForm(ShownForm):
    """The form of a workspace. Channels can be entered but are never shown, since they hold tokens and passwords."""

    new_channels = forms.CharField(
        label="New channels",
        required=False,
        widget=UnfoldAdminTextareaWidget({"rows": 4, "autocomplete": "off", "spellcheck": "false"}),
        help_text="Apprise URLs, one a line. They replace all current channels. Empty: the current channels stay.",
    )
    remove_channels = forms.BooleanField(label="Remove all channels", required=False, widget=UnfoldBooleanSwitchWidget)

    def clean_new_channels(self) -> str:
        """Returns the new channels, one a line. Raises ValidationError if one of them can't be used."""
        return "\n".join(channels_check(self.cleaned_data[CHANNELS]))


@admin.register(Workspace)
class WorkspaceAdmin(OwnedAdmin):
    """Workspaces. Owners change the texts of their agent card; superusers create workspaces and assign the owners."""

    owner_lookup = "owner"
    can_change = True
    form = WorkspaceForm
    change_form_outer_after_template = "admin/volcanic/channels.html"
    list_display = ("slug", "owner", "card_name", "updated_at")
    list_select_related = ("owner",)
    search_fields = ("slug", "card_name")
    ordering = ("slug",)

    def get_fieldsets(self, request: HttpRequest, obj: Workspace | None = None) -> Any:
        """Returns the fieldsets. Only superusers can choose the owner; an owner sees the owner's name."""
        card = {"fields": ("card_name", "card_description"), "description": "Shown to callers."}
        times = (("Times", {"fields": ("created_at", "updated_at")}),) if obj is not None else ()
        return (
            (None, {"fields": ("slug", "owner" if is_superuser(request) else "owner_name", "folder")}),
            ("Agent card", card),
            ("Callers' turns", {"fields": ("notify_owner",)}),
            ("Notifications", {"fields": ("channels", CHANNELS, REMOVE), "description": "Where they are sent."}),
            *times,
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Only superusers may create workspaces."""
        return is_superuser(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Workspace | None = None) -> tuple[str, ...]:
        """Returns the read-only fields. The slug of an existing workspace is among them, since it names the folder."""
        fixed = ("folder", "channels", "created_at", "updated_at", "owner_name")
        return fixed if obj is None else ("slug", *fixed)

    def formfield_for_foreignkey(self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        """Returns a form field. The field "owner" offers users who can log in and users who own a workspace already."""
        if db_field.name == "owner":
            can_log_in = Q(is_active=True, is_staff=True)
            kwargs["queryset"] = User.objects.filter(can_log_in | Q(workspaces__isnull=False)).distinct()
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    @display(description="Owner")
    def owner_name(self, obj: Workspace) -> str:
        """User name of the owner."""
        return obj.owner.get_username()

    @display(description="Folder")
    def folder(self, obj: Workspace) -> str:
        """Folder with AGENTS.md, PERSONA.md, MEMORY.md and the inbox."""
        return str(obj.path) if obj.slug else "Created together with the workspace."

    @display(description="Channels")
    def channels(self, obj: Workspace) -> str:
        """Channels without their tokens and passwords."""
        return ", ".join(map(channel_shown, channel_lines(obj.notify_urls))) or "None: notifications wait here only."

    def panels(self, request: HttpRequest, obj: Workspace) -> dict[str, Any]:
        """Returns the number of channels, for the button that tests them."""
        return {"channels": len(channel_lines(obj.notify_urls))}

    def get_urls(self) -> list[URLPattern]:
        """Adds the URL of the button "Send a test"."""
        return [self.post_path("send-test", "send_test", self._send_test), *super().get_urls()]

    def _send_test(self, request: HttpRequest, workspace: Workspace) -> HttpResponse:
        """Sends a test to all channels at once. Shows the result of each channel within TEST_SECONDS."""
        back = redirect("admin:volcanic_workspace_change", workspace.pk)
        urls = channel_lines(workspace.notify_urls)
        if not _testing.acquire(blocking=False):
            messages.error(request, "Another test is running. Try again in a few seconds.")
            return back
        try:
            trying = _try_all(urls, workspace.card_name or settings.CARD_NAME)
            errors = run_on_loop(trying)
        finally:
            _testing.release()
        for url, error in zip(urls, errors, strict=True):
            tell = messages.error if error else messages.success
            tell(request, f"{channel_shown(url)}: {error or 'delivered.'}")
        logger.info("%s tried %s channels of workspace %s", current().name, len(urls), workspace.pk)
        self.log_change(request, workspace, "Sent a test.")
        return back

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:
        """Creates a workspace with its folder. For an existing workspace, writes only the changed fields."""
        if not change:
            made = workspace_create(slug=obj.slug, owner=obj.owner)
            obj.pk, obj._state.adding = made.pk, False
        if changed := set(form.changed_data) - {"slug", CHANNELS, REMOVE}:
            obj.save(update_fields=[*changed, "updated_at"])
        channels = form.cleaned_data.get(CHANNELS) or ""
        if channels or form.cleaned_data.get(REMOVE):
            workspace_set_channels(workspace=obj, text=channels)


async def _try_all(urls: Sequence[str], title: str) -> list[str]:
    """Sends the test text to all channels at once. Returns an error text for each channel, "" for success."""
    sending = [channel_send_apart(url, title, TEST_TEXT, seconds=TEST_SECONDS) for url in urls]
    return await asyncio.gather(*sending)

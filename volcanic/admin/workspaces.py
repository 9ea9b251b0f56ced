"""Workspaces: what the agent card says, where the folder is, and where notifications go."""

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
# Held by the one test that is under way: each of its channels is a process of its own meanwhile.
_testing = threading.Lock()


class WorkspaceForm(ShownForm):
    """A workspace. Its channels hold tokens and passwords: they go in here and never come out again."""

    new_channels = forms.CharField(
        label="New channels",
        required=False,
        widget=UnfoldAdminTextareaWidget({"rows": 4, "autocomplete": "off", "spellcheck": "false"}),
        help_text="Apprise URLs, one a line, in place of all channels there are now. Empty: they stay.",
    )
    remove_channels = forms.BooleanField(label="Remove all channels", required=False, widget=UnfoldBooleanSwitchWidget)

    def clean_new_channels(self) -> str:
        """Returns the addresses, all of which can be used."""
        return "\n".join(channels_check(self.cleaned_data[CHANNELS]))


@admin.register(Workspace)
class WorkspaceAdmin(OwnedAdmin):
    """Owners change what their card says; superusers make workspaces and give them to owners."""

    owner_lookup = "owner"
    can_change = True
    form = WorkspaceForm
    change_form_outer_after_template = "admin/volcanic/channels.html"
    list_display = ("slug", "owner", "card_name", "updated_at")
    list_select_related = ("owner",)
    search_fields = ("slug", "card_name")
    ordering = ("slug",)

    def get_fieldsets(self, request: HttpRequest, obj: Workspace | None = None) -> Any:
        """To an owner the owner is a name: the user's page is a superuser's."""
        card = {"fields": ("card_name", "card_description"), "description": "What callers see of you."}
        times = (("Times", {"fields": ("created_at", "updated_at")}),) if obj is not None else ()
        return (
            (None, {"fields": ("slug", "owner" if is_superuser(request) else "owner_name", "folder")}),
            ("Agent card", card),
            ("Callers' turns", {"fields": ("notify_owner",)}),
            ("Being told", {"fields": ("channels", CHANNELS, REMOVE), "description": "Where notifications go."}),
            *times,
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Superusers make workspaces."""
        return is_superuser(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Workspace | None = None) -> tuple[str, ...]:
        """The slug names the folder and stays; the owner is a superuser's to change."""
        fixed = ("folder", "channels", "created_at", "updated_at", "owner_name")
        return fixed if obj is None else ("slug", *fixed)

    def formfield_for_foreignkey(self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        """Offers people who can log in here, and whoever owns a workspace already."""
        if db_field.name == "owner":
            can_log_in = Q(is_active=True, is_staff=True)
            kwargs["queryset"] = User.objects.filter(can_log_in | Q(workspaces__isnull=False)).distinct()
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    @display(description="Owner")
    def owner_name(self, obj: Workspace) -> str:
        """Who owns it."""
        return obj.owner.get_username()

    @display(description="Folder")
    def folder(self, obj: Workspace) -> str:
        """Where AGENTS.md, PERSONA.md, MEMORY.md and the inbox are."""
        return str(obj.path) if obj.slug else "Made with the workspace."

    @display(description="Channels")
    def channels(self, obj: Workspace) -> str:
        """Where notifications go, without tokens and passwords."""
        return ", ".join(map(channel_shown, channel_lines(obj.notify_urls))) or "None: notifications wait here only."

    def panels(self, request: HttpRequest, obj: Workspace) -> dict[str, Any]:
        """Returns how many channels there are to be tried."""
        return {"channels": len(channel_lines(obj.notify_urls))}

    def get_urls(self) -> list[URLPattern]:
        """Adds what the button posts to."""
        return [self.post_path("send-test", "send_test", self._send_test), *super().get_urls()]

    def _send_test(self, request: HttpRequest, workspace: Workspace) -> HttpResponse:
        """Sends a text to each channel, all at once, and shows what became of each within TEST_SECONDS."""
        back = redirect("admin:volcanic_workspace_change", workspace.pk)
        urls = channel_lines(workspace.notify_urls)
        if not _testing.acquire(blocking=False):
            messages.error(request, "Channels are being tried already. Try again in a few seconds.")
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
        """Makes a workspace with its folder; of an existing one, writes what was changed."""
        if not change:
            made = workspace_create(slug=obj.slug, owner=obj.owner)
            obj.pk, obj._state.adding = made.pk, False
        if changed := set(form.changed_data) - {"slug", CHANNELS, REMOVE}:
            obj.save(update_fields=[*changed, "updated_at"])
        channels = form.cleaned_data.get(CHANNELS) or ""
        if channels or form.cleaned_data.get(REMOVE):
            workspace_set_channels(workspace=obj, text=channels)


async def _try_all(urls: Sequence[str], title: str) -> list[str]:
    """Sends a text to all channels. Returns what went wrong with each, "" if nothing did."""
    sending = [channel_send_apart(url, title, TEST_TEXT, seconds=TEST_SECONDS) for url in urls]
    return await asyncio.gather(*sending)

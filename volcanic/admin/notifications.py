"""Admin screens of notifications and memories."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html

from volcanic.admin.base import OwnedAdmin, OwnRelatedFilter, display, moment, said, task_url
from volcanic.admin.dashboard import Card, capped_count, register_card
from volcanic.models import Memory, Notification
from volcanic.services import memories_adopt, notifications_mark_read
from volcanic.toolbox.sandbox import sandbox


@admin.register(Notification)
class NotificationAdmin(OwnedAdmin):
    """The owner's inbox: unread first, then the newest."""

    owner_lookup = "workspace__owner"
    can_delete = True
    list_display = ("line", "shown_state", "shown_kind", "caller", "workspace", "created", "told")
    list_filter = (
        ("read_at", admin.EmptyFieldListFilter),
        "kind",
        "urgent",
        "caller",
        ("workspace", OwnRelatedFilter),
        "created_at",
    )
    list_select_related = ("workspace",)
    search_fields = ("text", "caller", "=task")
    ordering = (F("read_at").desc(nulls_first=True), "-id")
    actions = ("mark_read",)
    fields = (
        "full_text",
        "kind",
        "urgent",
        "caller",
        "task_link",
        "session_link",
        "workspace",
        "created_at",
        "delivered_at",
        "read_at",
    )
    readonly_fields = fields
    change_form_outer_before_template = "admin/volcanic/unread.html"

    def get_urls(self) -> list[URLPattern]:
        """Adds the URL of the button "Mark as read"."""
        return [self.post_path("mark-read", "mark_read", self._mark_one_read), *super().get_urls()]

    def _mark_one_read(self, request: HttpRequest, notification: Notification) -> HttpResponse:
        self.mark_read(request, Notification.objects.filter(pk=notification.pk))
        return redirect("admin:volcanic_notification_changelist")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Returns the rows with their workspace and session."""
        return super().get_queryset(request).select_related("workspace", "session")

    @display(description="Notification")
    def line(self, obj: Notification) -> str:
        """Beginning of the text."""
        return str(obj)

    @display(description="State", ordering="read_at", label={"unread": "warning", "read": None})
    def shown_state(self, obj: Notification) -> tuple[str, str]:
        """Whether the owner has read it."""
        return ("unread", "Unread") if obj.read_at is None else ("read", "Read")

    @display(description="Kind", ordering="kind", label={"urgent": "danger", "calm": None})
    def shown_kind(self, obj: Notification) -> tuple[str, str]:
        """Kind of notification; red if urgent, which did not wait until the owner was idle."""
        return ("urgent" if obj.urgent else "calm"), obj.get_kind_display()

    @display(description="Left", ordering="id")
    def created(self, obj: Notification) -> str:
        """Time when the assistant left the notification."""
        return moment(obj.created_at)

    @display(description="Told", empty_value="—")
    def told(self, obj: Notification) -> str | None:
        """Time when the notification was put into the owner's session and queued for their channels."""
        return moment(obj.delivered_at) or None

    @display(description="Text")
    def full_text(self, obj: Notification) -> str:
        """Whole text, with its line breaks. A caller may have written it."""
        return said(obj.text)

    @display(description="Task", empty_value="—")
    def task_link(self, obj: Notification) -> str | None:
        """Link to the task's page; the task's id where tasks have no page."""
        if obj.task is None:
            return None
        url = task_url(obj.task)
        return format_html('<a href="{}">{}</a>', url, obj.task) if url else str(obj.task)

    @display(description="Conversation")
    def session_link(self, obj: Notification) -> str:
        """Link to the session's transcript."""
        if obj.session is None:
            return ""
        url = reverse("admin:volcanic_session_change", args=[obj.session.pk])
        return format_html('<a href="{}">{}</a>', url, obj.session)

    @admin.action(description="Mark as read", permissions=["view"])
    def mark_read(self, request: HttpRequest, notifications: QuerySet[Notification]) -> None:
        """Marks unread notifications as read."""
        done = notifications_mark_read(ids=list(notifications.values_list("pk", flat=True)))
        messages.success(request, f"Marked as read: {done}.")


@admin.register(Memory)
class MemoryAdmin(OwnedAdmin):
    """Memories beside MEMORY.md. The owner can read them, delete them and adopt callers' memories."""

    owner_lookup = "workspace__owner"
    can_delete = True
    list_display = ("line", "shown_source", "workspace", "created")
    list_filter = (("source", admin.EmptyFieldListFilter), "caller", ("workspace", OwnRelatedFilter), "created_at")
    list_select_related = ("workspace",)
    search_fields = ("text", "caller")
    ordering = ("-id",)
    actions = ("adopt",)
    fields = ("full_text", "whose", "caller", "origin", "workspace", "created_at")
    readonly_fields = fields

    @display(description="Memory")
    def line(self, obj: Memory) -> str:
        """Beginning of the text."""
        return str(obj)

    @display(description="From", ordering="source", label={"caller": "warning", "owner": "success"})
    def shown_source(self, obj: Memory) -> tuple[str, str]:
        """Source of the memory, with its color."""
        return ("caller" if obj.source else "owner"), self.whose(obj)

    @display(description="From")
    def whose(self, obj: Memory) -> str:
        """Source of the memory: the owner or a caller's name."""
        return f"caller {obj.caller}" if obj.source else "you"

    @display(description="Remembered", ordering="id")
    def created(self, obj: Memory) -> str:
        """Time when the memory was stored."""
        return moment(obj.created_at)

    @display(description="Text")
    def full_text(self, obj: Memory) -> str:
        """Whole text. A caller may have written it."""
        return said(obj.text)

    @admin.action(description="Adopt: make it your own", permissions=["view"])
    def adopt(self, request: HttpRequest, memories: QuerySet[Memory]) -> None:
        """Removes the source from callers' memories, so that they count as the owner's in every conversation."""
        done = memories_adopt(ids=list(memories.values_list("pk", flat=True)))
        messages.success(request, f"Adopted: {done}.")


@register_card
def unread_card(request: HttpRequest) -> Card:
    """Returns the card with the number of unread notifications, which a partial index counts."""
    rows = admin.site.get_model_admin(Notification).get_queryset(request)
    return Card(
        title="Notifications",
        value=capped_count(rows.filter(read_at=None)),
        note="unread",
        href=reverse("admin:volcanic_notification_changelist") + "?read_at__isempty=1",
    )


@register_card
def sandbox_card(request: HttpRequest) -> Card:
    """Returns the card that tells whether callers' turns can run commands.

    The sandbox is tested in the web process. The answer holds for workers on a machine with the same setup.
    """
    found = sandbox()
    return Card(
        title="Commands for callers",
        value="sandboxed" if found.works else "off",
        note="callers' turns have bash, in bubblewrap" if found.works else f"no bash: {found.problem}",
        href=reverse("admin:volcanic_workspace_changelist"),
    )

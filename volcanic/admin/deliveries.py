"""What went to the owner's channels, and what is still on its way."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from volcanic.admin.base import OwnedAdmin, OwnRelatedFilter, display, moment, said
from volcanic.models import NotificationDelivery
from volcanic.notifications.deliveries import delivery_retry
from volcanic.text import cut, one_way

LABELS: dict[str, str | None] = {
    NotificationDelivery.State.PENDING: "info",
    NotificationDelivery.State.DELIVERED: "success",
    NotificationDelivery.State.FAILED: "danger",
}


@admin.register(NotificationDelivery)
class NotificationDeliveryAdmin(OwnedAdmin):
    """Texts to channels. The channel's address is never shown: it holds tokens and passwords."""

    owner_lookup = "workspace__owner"
    list_display = ("line", "channel", "shown_state", "retries", "last_error", "next_try", "created")
    list_filter = ("state", ("workspace", OwnRelatedFilter), "created_at")
    list_select_related = ("workspace",)
    search_fields = ("text", "channel")
    ordering = ("-id",)
    actions = ("try_again",)
    fields = (
        "full_text",
        "channel",
        "state",
        "retries",
        "last_error",
        "next_try",
        "workspace",
        "created_at",
        "delivered_at",
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Brings the workspace along, and leaves the address where it is."""
        return super().get_queryset(request).select_related("workspace").defer("url")

    @display(description="Text")
    def line(self, obj: NotificationDelivery) -> str:
        """The beginning of the text."""
        return cut(one_way(obj.text), 80)

    @display(description="State", ordering="state", label=LABELS)
    def shown_state(self, obj: NotificationDelivery) -> tuple[str, str]:
        """The state, in its colour."""
        return obj.state, obj.get_state_display()

    @display(description="Next try", empty_value="—")
    def next_try(self, obj: NotificationDelivery) -> str | None:
        """When it is tried again, if it is."""
        return moment(obj.next_try_at) if obj.state == NotificationDelivery.State.PENDING else None

    @display(description="Created", ordering="id")
    def created(self, obj: NotificationDelivery) -> str:
        """When the owner was told."""
        return moment(obj.created_at)

    @display(description="Text")
    def full_text(self, obj: NotificationDelivery) -> str:
        """All of it, with its lines. It may be callers' words."""
        return said(obj.text)

    @admin.action(description="Try again", permissions=["view"])
    def try_again(self, request: HttpRequest, deliveries: QuerySet[NotificationDelivery]) -> None:
        """Tries at once what was given up, from the first try on. All else is left alone, which is said."""
        failed = NotificationDelivery.State.FAILED
        others = deliveries.exclude(state=failed).count()
        self.change_each(request, deliveries.filter(state=failed), "Being tried again", delivery_retry)
        if others:
            said = "Only what was given up is tried again: what is pending is tried by itself, and may be on its way."
            messages.warning(request, f"Left as they are: {others}. {said}")

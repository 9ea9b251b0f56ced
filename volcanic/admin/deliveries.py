"""Admin screen of notification deliveries to the owner's channels."""

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
    """Deliveries of texts to channels. The channel's address is never shown, since it holds tokens and passwords."""

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
        """Returns the rows with their workspace and without the channel's address, which stays in the database."""
        return super().get_queryset(request).select_related("workspace").defer("url")

    @display(description="Text")
    def line(self, obj: NotificationDelivery) -> str:
        """Beginning of the text."""
        return cut(one_way(obj.text), 80)

    @display(description="State", ordering="state", label=LABELS)
    def shown_state(self, obj: NotificationDelivery) -> tuple[str, str]:
        """State, with its color."""
        return obj.state, obj.get_state_display()

    @display(description="Next try", empty_value="—")
    def next_try(self, obj: NotificationDelivery) -> str | None:
        """Time of the next try of a pending delivery."""
        return moment(obj.next_try_at) if obj.state == NotificationDelivery.State.PENDING else None

    @display(description="Created", ordering="id")
    def created(self, obj: NotificationDelivery) -> str:
        """Time when the delivery was created."""
        return moment(obj.created_at)

    @display(description="Text")
    def full_text(self, obj: NotificationDelivery) -> str:
        """Whole text, with its line breaks. A caller may have written it."""
        return said(obj.text)

    @admin.action(description="Try again", permissions=["view"])
    def try_again(self, request: HttpRequest, deliveries: QuerySet[NotificationDelivery]) -> None:
        """Restarts failed deliveries at once, with all their tries. Other deliveries are skipped, with a warning."""
        failed = NotificationDelivery.State.FAILED
        others = deliveries.exclude(state=failed).count()
        self.change_each(request, deliveries.filter(state=failed), "Being tried again", delivery_retry)
        if others:
            said = "Only failed deliveries can be tried again. Pending deliveries are tried automatically."
            messages.warning(request, f"Left unchanged: {others}. {said}")

"""The owner's admin screens for webhooks: address, deliveries made and pending, "Deliver now" and "Stop"."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html

from a2a_server.models import PushConfig, PushDelivery
from a2a_server.push.configs import push_config_deliver_now, push_config_stop
from volcanic.admin.base import OwnedAdmin, OwnRelatedFilter, display, moment

CONFIG_LABELS: dict[str, str | None] = {
    PushConfig.State.ACTIVE: "success",
    PushConfig.State.FAILING: "danger",
    PushConfig.State.STOPPED: None,
}
SHOWN_DELIVERIES = 200


@admin.register(PushConfig)
class PushConfigAdmin(OwnedAdmin):
    """The webhooks that callers registered. Tokens and credentials are never shown."""

    owner_lookup = "task__caller__workspace__owner"
    list_display = ("config_id", "shown_state", "url", "caller", "last_error", "next_try", "created_at")
    list_filter = ("state", ("task__caller", OwnRelatedFilter), "created_at")
    list_select_related = ("task__caller",)
    search_fields = ("=task__id", "config_id", "url")
    ordering = ("-id",)
    actions = ("deliver_now", "stop")
    fields = ("config_id", "task_link", "url", "version", "auth_scheme", "state", "created_at")
    readonly_fields: ClassVar = ("task_link",)
    change_form_outer_after_template = "admin/a2a_server/deliveries.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Returns the webhooks, each with the time and the last error of its next pending delivery."""
        owed = PushDelivery.objects.filter(config=OuterRef("pk"), state=PushDelivery.State.PENDING).order_by("seq")
        rows = super().get_queryset(request).select_related("task__caller").defer("token", "auth_credentials")
        annotated: QuerySet[Any] = rows.annotate(
            next_try_at=Subquery(owed.values("next_try_at")[:1]), next_error=Subquery(owed.values("last_error")[:1])
        )
        return annotated

    @display(description="State", ordering="state", label=CONFIG_LABELS)
    def shown_state(self, obj: PushConfig) -> tuple[str, str]:
        """Returns the state and its label, which the admin shows in the state's colour."""
        return obj.state, obj.get_state_display()

    @display(description="Caller")
    def caller(self, obj: PushConfig) -> str:
        """Returns the name of the caller that registered the webhook."""
        return obj.task.caller.name

    @display(description="Last error", empty_value="—")
    def last_error(self, obj: Any) -> str | None:
        """Returns the last error of the next pending delivery, None without an error."""
        return obj.next_error or None

    @display(description="Next try")
    def next_try(self, obj: Any) -> str:
        """Returns the time at which the next pending delivery is tried."""
        return moment(obj.next_try_at)

    @display(description="Task")
    def task_link(self, obj: PushConfig) -> str:
        """Returns a link to the task's page."""
        return format_html(
            '<a href="{}">{}</a>', reverse("admin:a2a_server_task_change", args=[obj.task_id]), obj.task_id
        )

    def panels(self, request: HttpRequest, obj: PushConfig) -> dict[str, Any]:
        """Returns the SHOWN_DELIVERIES newest deliveries of the webhook."""
        return {"deliveries": list(obj.deliveries.order_by("-seq")[:SHOWN_DELIVERIES])}

    def get_urls(self) -> list[URLPattern]:
        """Adds the addresses to which the buttons "Deliver now" and "Stop" post."""
        return [
            self.post_path("deliver-now", "deliver_now", self._deliver_now),
            self.post_path("stop", "stop", self._stop),
            *super().get_urls(),
        ]

    def _deliver_now(self, request: HttpRequest, config: PushConfig) -> HttpResponse:
        self.deliver_now(request, PushConfig.objects.filter(pk=config.pk))
        return redirect("admin:a2a_server_pushconfig_change", config.pk)

    def _stop(self, request: HttpRequest, config: PushConfig) -> HttpResponse:
        self.stop(request, PushConfig.objects.filter(pk=config.pk))
        return redirect("admin:a2a_server_pushconfig_change", config.pk)

    @admin.action(description="Deliver now", permissions=["view"])
    def deliver_now(self, request: HttpRequest, configs: QuerySet[PushConfig]) -> None:
        """Tries the pending deliveries of the selected webhooks at once, with the count of retries back at 0."""
        owing = 0
        for config in configs.select_related(None).only("pk"):
            owing += push_config_deliver_now(config=config)
            self.log_change(request, config, "Deliver now.")
        messages.success(request, f"Being delivered now: {owing}. Webhooks without pending deliveries get nothing.")

    @admin.action(description="Stop", permissions=["view"])
    def stop(self, request: HttpRequest, configs: QuerySet[PushConfig]) -> None:
        """Stops the selected webhooks: nothing more is sent to them."""
        stopped = 0
        for config in configs.select_related(None).only("pk"):
            if push_config_stop(config=config):
                stopped += 1
                self.log_change(request, config, "Stopped.")
        messages.success(request, f"Stopped: {stopped}.")

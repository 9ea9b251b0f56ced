"""Screens of authentication: the identities of callers, and the refused calls."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from trust import services
from trust.models import CallerIdentity, RefusedCall
from volcanic.admin.base import OwnedAdmin, OwnRelatedFilter, SuperuserAdmin, display, is_superuser


@admin.register(CallerIdentity)
class CallerIdentityAdmin(OwnedAdmin):
    """The screen of callers' identities at issuers. A deleted identity lets nobody in any more."""

    owner_lookup = "caller__workspace__owner"
    can_add = can_delete = True
    list_display = ("agent_id", "issuer", "caller", "workspace", "created_at")
    list_filter = ("issuer", ("caller", OwnRelatedFilter))
    list_select_related = ("caller__workspace",)
    search_fields = ("agent_id", "issuer", "caller__name")
    ordering = ("-id",)
    fields = ("caller", "issuer", "agent_id", "created_at")
    readonly_fields = ("created_at",)

    def get_fields(self, request: HttpRequest, obj: CallerIdentity | None = None) -> tuple[str, ...]:
        """Returns the fields. A new identity has no time of creation yet."""
        return self.fields if obj is not None else self.fields[:-1]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Allows superusers only.

        An identity counts in the whole installation, so an owner could claim the agent of another owner.
        """
        return super().has_add_permission(request) and is_superuser(request)

    @display(description="Workspace", ordering="caller__workspace__slug")
    def workspace(self, obj: CallerIdentity) -> str:
        """Returns the slug of the caller's workspace."""
        return obj.caller.workspace.slug

    def save_model(self, request: HttpRequest, obj: CallerIdentity, form: Any, change: bool) -> None:
        """Adds the identity. The form has checked that the identity is free."""
        made = services.identity_add(caller=obj.caller, issuer=obj.issuer, agent_id=obj.agent_id)
        obj.pk, obj._state.adding = made.pk, False

    def delete_model(self, request: HttpRequest, obj: CallerIdentity) -> None:
        """Removes the identity."""
        services.identity_remove(identity=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[CallerIdentity]) -> None:
        """Removes the identities."""
        for identity in queryset:
            self.delete_model(request, identity)


@admin.register(RefusedCall)
class RefusedCallAdmin(SuperuserAdmin):
    """The screen of calls that came without a valid credential. Credentials are never kept."""

    list_display = ("last_seen_at", "source", "reason", "path", "count", "first_seen_at")
    list_filter = ("reason", "last_seen_at")
    search_fields = ("source", "reason", "path")
    ordering = ("-last_seen_at",)
    fields: ClassVar = ("source", "reason", "path", "count", "first_seen_at", "last_seen_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuses: the server records refused calls, and nobody adds one by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuses: nobody changes a refused call."""
        return False

"""Screens of who is calling: the identities that stand for callers, and the calls that were refused."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from trust import services
from trust.models import CallerIdentity, RefusedCall
from volcanic.admin.base import OwnedAdmin, OwnRelatedFilter, SuperuserAdmin, display, is_superuser


@admin.register(CallerIdentity)
class CallerIdentityAdmin(OwnedAdmin):
    """What callers are called by issuers. An identity that is deleted no longer lets anybody in."""

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
        """One that is not there yet has no time."""
        return self.fields if obj is not None else self.fields[:-1]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Superusers only: an identity counts in the whole installation, and an owner could claim another's agent."""
        return super().has_add_permission(request) and is_superuser(request)

    @display(description="Workspace", ordering="caller__workspace__slug")
    def workspace(self, obj: CallerIdentity) -> str:
        """Whose caller it is."""
        return obj.caller.workspace.slug

    def save_model(self, request: HttpRequest, obj: CallerIdentity, form: Any, change: bool) -> None:
        """Adds the identity; the form has refused one that is taken."""
        made = services.identity_add(caller=obj.caller, issuer=obj.issuer, agent_id=obj.agent_id)
        obj.pk, obj._state.adding = made.pk, False

    def delete_model(self, request: HttpRequest, obj: CallerIdentity) -> None:
        """Ends the identity."""
        services.identity_remove(identity=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[CallerIdentity]) -> None:
        """Ends the identities."""
        for identity in queryset:
            self.delete_model(request, identity)


@admin.register(RefusedCall)
class RefusedCallAdmin(SuperuserAdmin):
    """Calls that came with no credential, or with one that is not good. Credentials are never kept."""

    list_display = ("last_seen_at", "source", "reason", "path", "count", "first_seen_at")
    list_filter = ("reason", "last_seen_at")
    search_fields = ("source", "reason", "path")
    ordering = ("-last_seen_at",)
    fields: ClassVar = ("source", "reason", "path", "count", "first_seen_at", "last_seen_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """They are noted, not added."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """They are what they are."""
        return False

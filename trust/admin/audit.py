"""The screen of the audit: actor, action, caller and reason. Nobody can edit it, since the database refuses changes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from trust.models import AuditEntry, Caller
from volcanic.admin.base import CHOICES, LISTED_ROWS, OwnedAdmin, OwnRelatedFilter, display, moment

if TYPE_CHECKING:  # the theme is untyped, and its class is Django's filter with another look
    Dropdown = admin.SimpleListFilter
else:
    from unfold.contrib.filters.admin import DropdownFilter as Dropdown


class _RecentValuesFilter(Dropdown):
    """Filters by a column. It offers only values of the visitor's newest lines, since an audit grows without end."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterator[tuple[str, str]]:
        """Returns the values in the newest LISTED_ROWS lines."""
        newest = model_admin.get_queryset(request).order_by("-id").values_list(self.parameter_name)[:LISTED_ROWS]
        yield from ((value, value) for value in sorted({value for (value,) in newest}))

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """Returns the lines with the chosen value."""
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset


class ActionFilter(_RecentValuesFilter):
    """Filters by the action."""

    title = "action"
    parameter_name = "action"


class ActorFilter(_RecentValuesFilter):
    """Filters by the actor."""

    title = "actor"
    parameter_name = "actor"


class CallerFilter(Dropdown):
    """Filters by the caller, and offers existing callers only. Search finds lines about a deleted caller by name."""

    title = "caller"
    parameter_name = "caller_id"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterator[tuple[str, str]]:
        """Returns the visitor's callers."""
        callers: QuerySet[Caller] = model_admin.admin_site.get_model_admin(Caller).get_queryset(request)
        rows = callers.prefetch_related(None).order_by("name", "id").values_list("pk", "name")[:CHOICES]
        yield from ((str(pk), name) for pk, name in rows)

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """Returns the lines about the chosen caller, or no lines if the value is not a caller's id."""
        value = self.value() or ""
        if not value:
            return queryset
        known = value.isascii() and value.isdigit() and len(value) < 19
        return queryset.filter(caller_id=int(value)) if known else queryset.none()


@admin.register(AuditEntry)
class AuditEntryAdmin(OwnedAdmin):
    """The lines of the owner's workspaces. Superusers also see lines without a workspace."""

    owner_lookup = "workspace__owner"
    list_display = ("shown_at", "action", "caller", "subject", "actor", "reason")
    list_filter = (ActionFilter, CallerFilter, ActorFilter, ("workspace", OwnRelatedFilter))
    list_select_related = ("workspace",)
    search_fields = ("action", "caller", "subject", "actor", "reason", "request_id")
    search_help_text = "Action, caller, subject, actor, reason or request id"
    ordering = ("-id",)
    # An audit is long, and only its own order has an index.
    sortable_by = ("shown_at",)
    fields: ClassVar = ("at", "actor", "action", "caller", "subject", "reason", "shown_workspace", "request_id")
    readonly_fields: ClassVar = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Returns the lines with their workspace, which may be gone."""
        return super().get_queryset(request).select_related("workspace")

    @display(description="At", ordering="id")
    def shown_at(self, obj: AuditEntry) -> str:
        """Returns the time of the action."""
        return moment(obj.at)

    @display(description="Workspace", empty_value="—")
    def shown_workspace(self, obj: AuditEntry) -> str | None:
        """Returns the slug of the workspace, if the workspace still exists."""
        return obj.workspace.slug if obj.workspace else None

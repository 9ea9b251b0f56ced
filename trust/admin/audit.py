"""The screen of the audit: who did what to whom, and why. To read, for everybody: the database lets no line change."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from trust.models import AuditEntry, Caller
from volcanic.admin.base import CHOICES, LISTED_ROWS, OwnedAdmin, OwnRelatedFilter, display, moment

if TYPE_CHECKING:  # the theme is untyped, and its class is Django's with more looks
    Dropdown = admin.SimpleListFilter
else:
    from unfold.contrib.filters.admin import DropdownFilter as Dropdown


class _RecentValuesFilter(Dropdown):
    """Filters by a column, offering what stands in the visitor's newest lines: an audit grows without end."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterator[tuple[str, str]]:
        """Returns the values that there are in the newest lines."""
        newest = model_admin.get_queryset(request).order_by("-id").values_list(self.parameter_name)[:LISTED_ROWS]
        yield from ((value, value) for value in sorted({value for (value,) in newest}))

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """Returns the lines with the chosen value."""
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset


class ActionFilter(_RecentValuesFilter):
    """By what was done."""

    title = "action"
    parameter_name = "action"


class ActorFilter(_RecentValuesFilter):
    """By who did it."""

    title = "actor"
    parameter_name = "actor"


class CallerFilter(Dropdown):
    """By the caller, offering those there are. Lines about one that is gone are found by its name."""

    title = "caller"
    parameter_name = "caller_id"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterator[tuple[str, str]]:
        """Returns the visitor's callers."""
        callers: QuerySet[Caller] = model_admin.admin_site.get_model_admin(Caller).get_queryset(request)
        rows = callers.prefetch_related(None).order_by("name", "id").values_list("pk", "name")[:CHOICES]
        yield from ((str(pk), name) for pk, name in rows)

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """Returns the lines about the chosen caller; about none for what is no caller's id."""
        value = self.value() or ""
        if not value:
            return queryset
        known = value.isascii() and value.isdigit() and len(value) < 19
        return queryset.filter(caller_id=int(value)) if known else queryset.none()


@admin.register(AuditEntry)
class AuditEntryAdmin(OwnedAdmin):
    """Every line of the owner's workspaces. Superusers see those of none, too."""

    owner_lookup = "workspace__owner"
    list_display = ("shown_at", "action", "caller", "subject", "actor", "reason")
    list_filter = (ActionFilter, CallerFilter, ActorFilter, ("workspace", OwnRelatedFilter))
    list_select_related = ("workspace",)
    search_fields = ("action", "caller", "subject", "actor", "reason", "request_id")
    search_help_text = "Action, caller, subject, actor, reason or request id"
    ordering = ("-id",)
    # An audit is long, and has an index for its own order only.
    sortable_by = ("shown_at",)
    fields: ClassVar = ("at", "actor", "action", "caller", "subject", "reason", "shown_workspace", "request_id")
    readonly_fields: ClassVar = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Brings the workspace along, which may be gone."""
        return super().get_queryset(request).select_related("workspace")

    @display(description="At", ordering="id")
    def shown_at(self, obj: AuditEntry) -> str:
        """When it was done."""
        return moment(obj.at)

    @display(description="Workspace", empty_value="—")
    def shown_workspace(self, obj: AuditEntry) -> str | None:
        """Where, if it is still there."""
        return obj.workspace.slug if obj.workspace else None

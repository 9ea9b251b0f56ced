"""Workspaces: what the agent card says, and where the folder is."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import ForeignKey, Q
from django.http import HttpRequest

from volcanic.admin.base import OwnedAdmin, display, is_superuser
from volcanic.models import Workspace
from volcanic.services import workspace_create


@admin.register(Workspace)
class WorkspaceAdmin(OwnedAdmin):
    """Owners change what their card says; superusers make workspaces and give them to owners."""

    owner_lookup = "owner"
    can_change = True
    list_display = ("slug", "owner", "card_name", "updated_at")
    list_select_related = ("owner",)
    search_fields = ("slug", "card_name")
    ordering = ("slug",)

    def get_fieldsets(self, request: HttpRequest, obj: Workspace | None = None) -> Any:
        """To an owner the owner is a name: the user's page is a superuser's."""
        card = {"fields": ("card_name", "card_description"), "description": "What callers see of you."}
        return (
            (None, {"fields": ("slug", "owner" if is_superuser(request) else "owner_name", "folder")}),
            ("Agent card", card),
            ("Callers' turns", {"fields": ("notify_owner",)}),
            ("Times", {"fields": ("created_at", "updated_at")}),
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Superusers make workspaces."""
        return is_superuser(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Workspace | None = None) -> tuple[str, ...]:
        """The slug names the folder and stays; the owner is a superuser's to change."""
        fixed = ("folder", "created_at", "updated_at", "owner_name")
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

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:
        """Makes a workspace with its folder; of an existing one, writes what was changed."""
        if not change:
            made = workspace_create(slug=obj.slug, owner=obj.owner)
            obj.pk, obj._state.adding = made.pk, False
        if form.changed_data:
            obj.save(update_fields=[*(set(form.changed_data) - {"slug"}), "updated_at"])

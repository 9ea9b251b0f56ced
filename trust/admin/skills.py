"""The owner's screen of skills. Every rule is in trust.services.skills."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.actions import delete_selected
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.shortcuts import redirect

from trust import services
from trust.admin.skill_forms import SkillForm, handler_choices
from trust.models import Skill
from volcanic.admin.base import OwnedAdmin, OwnRelatedFilter, display
from volcanic.models import Workspace

_ABOUT = ("workspace", "slug", "aliases", "name", "description", "tags", "examples", "enabled", "advertised")
_BUILT_IN = ("slug", "name", "description", "tags", "kind", "enabled", "advertised")


@admin.register(Skill)
class SkillAdmin(OwnedAdmin):
    """The screen of skills. Built-in skills belong to all workspaces and stay as they are."""

    owner_lookup = "workspace__owner"
    can_add = can_change = can_delete = True
    form = SkillForm
    list_display = ("name", "slug", "workspace_or_built_in", "answered_by", "enabled", "advertised")
    list_filter = ("enabled", "advertised", ("workspace", OwnRelatedFilter))
    list_select_related = ("workspace",)
    list_defer = ("instructions",)
    search_fields = ("name", "slug", "description")
    ordering = ("id",)
    actions = ("enable", "disable", "delete_selected")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Returns the visitor's own skills and the built-in ones."""
        every = super(OwnedAdmin, self).get_queryset(request).select_related("workspace")
        if request.user.is_superuser:
            return every
        return every.filter(Q(workspace__owner=request.user.pk) | Q(workspace=None))

    def get_fieldsets(self, request: HttpRequest, obj: Skill | None = None) -> Any:
        """Returns the groups of fields. The handler is asked for only if there is a choice."""
        if obj is not None and obj.workspace_id is None:
            return ((None, {"fields": _BUILT_IN}),)
        handler = ("handler",) if handler_choices(obj) else ()
        return (
            (None, {"fields": _ABOUT}),
            ("How it is done", {"fields": (*handler, "instructions", "tools_of_chat", "tools")}),
            ("Media types", {"fields": ("input_modes", "output_modes")}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Skill | None = None) -> tuple[str, ...]:
        """Returns the read-only fields of an existing skill.

        The id stays, since callers know the skill by it. The workspace stays, since grants belong to its callers.
        """
        return () if obj is None else ("workspace", "slug")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuses built-in skills."""
        return super().has_change_permission(request, obj) and (obj is None or obj.workspace_id is not None)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuses built-in skills."""
        return super().has_delete_permission(request, obj) and (obj is None or obj.workspace_id is not None)

    @display(description="Workspace", ordering="workspace__slug", empty_value="built in")
    def workspace_or_built_in(self, obj: Skill) -> str | None:
        """Returns the slug of the workspace, or None for a built-in skill."""
        return obj.workspace.slug if obj.workspace else None

    @display(description="Answered by", ordering="kind")
    def answered_by(self, obj: Skill) -> str:
        """Returns what answers requests for the skill: the assistant, a handler, or the product itself."""
        return obj.handler or obj.get_kind_display()

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Chooses the workspace if there is only one."""
        chosen: dict[str, Any] = super().get_changeform_initial_data(request)
        only = self.admin_site.get_model_admin(Workspace).get_queryset(request).values_list("pk", flat=True)[:2]
        return ({"workspace": only[0]} if len(only) == 1 else {}) | chosen

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> Any:
        """Adds or changes a skill. If a change by somebody else makes this fail, the list shows the error."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
            return redirect("admin:trust_skill_changelist")

    def save_model(self, request: HttpRequest, obj: Skill, form: Any, change: bool) -> None:
        """Makes a new skill, or writes the changed fields of an existing skill."""
        written = set(form.changed_data) if change else set(form.cleaned_data)
        if "tools_of_chat" in written:
            written.add("tools")
        fields = {name: form.cleaned_data[name] for name in services.SKILL_FIELDS if name in written}
        if change:
            services.skill_update(skill=obj, **fields)
            return
        assert obj.workspace is not None  # the form asks for it
        made = services.skill_create(workspace=obj.workspace, slug=obj.slug, **fields)
        obj.pk, obj._state.adding = made.pk, False

    def delete_model(self, request: HttpRequest, obj: Skill) -> None:
        """Deletes the skill and its grants."""
        services.skill_delete(skill=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Skill]) -> None:
        """Deletes the skills and their grants."""
        for skill in queryset:
            self.delete_model(request, skill)

    @admin.action(description="Enable selected skills", permissions=["change"])
    def enable(self, request: HttpRequest, skills: QuerySet[Skill]) -> None:
        """Enables the selected skills."""
        self._set_enabled(request, skills, enabled=True)

    @admin.action(description="Disable selected skills", permissions=["change"])
    def disable(self, request: HttpRequest, skills: QuerySet[Skill]) -> None:
        """Disables the selected skills for all their grants."""
        self._set_enabled(request, skills, enabled=False)

    @admin.action(description="Delete selected skills…", permissions=["delete"])
    def delete_selected(self, request: HttpRequest, skills: QuerySet[Skill]) -> Any:
        """Deletes the selected skills after Django's usual confirmation page."""
        own = self._own(request, skills)
        return delete_selected(self, request, own) if own.exists() else None

    def _own(self, request: HttpRequest, skills: QuerySet[Skill]) -> QuerySet[Skill]:
        """Returns the skills that are not built in, and shows a warning if some are."""
        own = skills.exclude(workspace=None)
        if own.count() < skills.count():
            messages.warning(request, "Built-in skills stay as they are.")
        return own

    def _set_enabled(self, request: HttpRequest, skills: QuerySet[Skill], *, enabled: bool) -> None:
        own = self._own(request, skills)
        word = "Enabled" if enabled else "Disabled"
        self.change_each(request, own, word, lambda skill: services.skill_set_enabled(skill=skill, enabled=enabled))

"""The owner's screens of trust: callers with their keys and grants, skills.

Every rule is in trust.services. A key is in the one response to the POST that made it and nowhere else: neither in a
message (Django keeps those in cookies or the session table) nor in an address.
"""

from datetime import timedelta
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse

from trust import identity_admin, services  # noqa: F401  registers the screens of identities
from trust.forms import CallerAddForm, CallerForm, GrantForm, RotateForm, SkillForm
from trust.limits import COLUMNS
from trust.models import Caller, CallerKey, Grant, Level, Skill
from trust.selectors import skills_of_workspace
from volcanic.admin.base import OwnedAdmin, OwnRelatedFilter, display, moment
from volcanic.admin.dashboard import Card, capped_count, register_card

LEVEL_LABELS: dict[str, str | None] = {
    Level.OBSERVE: None,
    Level.LEARN: "info",
    Level.PROPOSE: "warning",
    Level.ACT: "success",
}


@admin.register(Caller)
class CallerAdmin(OwnedAdmin):
    """Agents that may call. The name stays; keys, grants and what is written about a caller change."""

    owner_lookup = "workspace__owner"
    can_add = can_change = True
    form = CallerForm
    add_form = CallerAddForm
    list_display = (
        "name",
        "workspace",
        "shown_level",
        "enabled",
        "granted",
        "last_interaction_at",
        "interaction_count",
    )
    list_filter = ("level", "enabled", ("workspace", OwnRelatedFilter))
    list_select_related = ("workspace",)
    search_fields = ("name", "note")
    ordering = ("name", "id")
    actions = ("enable", "disable")
    facts: ClassVar = ("interaction_count", "first_seen_at", "last_interaction_at", "created_at")
    fieldsets = (
        (None, {"fields": ("name", "workspace", "level", "enabled", "note")}),
        ("Limits", {"fields": COLUMNS, "classes": ("collapse",)}),
        ("Seen", {"fields": facts, "classes": ("collapse",)}),
    )
    add_fieldsets = ((None, {"fields": ("workspace", "name", "level", "skills", "note")}),)
    change_form_outer_after_template = "admin/trust/caller/access.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Brings along what lists and forms show of other tables."""
        return super().get_queryset(request).select_related("workspace").prefetch_related("grants__skill")

    def get_readonly_fields(self, request: HttpRequest, obj: Caller | None = None) -> tuple[str, ...]:
        """A caller keeps its name and workspace."""
        return self.facts if obj is None else ("name", "workspace", *self.facts)

    def get_form(self, request: HttpRequest, obj: Caller | None = None, change: bool = False, **kwargs: Any) -> Any:
        """Adding asks for skills to grant, too."""
        if obj is not None:
            return super().get_form(request, obj, change, **kwargs)
        form = super().get_form(request, obj, change, form=self.add_form, **kwargs)
        # Of this class, which was made for this request only.
        form.skill_choices = self.admin_site.get_model_admin(Skill).get_queryset(request).filter(enabled=True)  # type: ignore[attr-defined]
        return form

    @display(description="Level", ordering="level", label=LEVEL_LABELS)
    def shown_level(self, obj: Caller) -> tuple[str, str]:
        """What happens to its plain requests."""
        return obj.level, obj.get_level_display()

    @display(description="Granted")
    def granted(self, obj: Caller) -> str:
        """What it may have done at once."""
        return ", ".join(sorted(grant.skill.slug for grant in obj.grants.all())) or "—"

    @display(description="Last seen", ordering="last_interaction_at")
    def seen(self, obj: Caller) -> str:
        """When it last asked for something."""
        return moment(obj.last_interaction_at)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Adds a caller. A second click on Save finds the name taken."""
        try:
            return super().add_view(request, form_url, extra_context)
        except (ValidationError, IntegrityError):
            messages.error(request, "There is a caller of that name already. Rotate its key if you have not seen it.")
            return redirect("admin:trust_caller_changelist")

    def save_model(self, request: HttpRequest, obj: Caller, form: Any, change: bool) -> None:
        """Makes a caller with its key and grants; of an existing one, writes what was changed."""
        if not change:
            slugs = [skill.slug for skill in form.cleaned_data["skills"]]
            made, key = services.caller_create(
                workspace=obj.workspace, name=obj.name, level=Level(obj.level), skills=slugs, note=obj.note
            )
            obj.pk, obj._state.adding = made.pk, False
            request.new_caller_key = key  # type: ignore[attr-defined]  # for response_add
            return
        changed = set(form.changed_data)
        if "enabled" in changed:
            services.caller_set_enabled(caller=obj, enabled=obj.enabled)
        if limits := changed & set(COLUMNS):
            services.caller_set_limits(caller=obj, **{name: getattr(obj, name) for name in limits})
        if changed & {"level", "note"}:
            services.caller_update(caller=obj, level=Level(obj.level), note=obj.note)

    def response_add(self, request: HttpRequest, obj: Caller, post_url_continue: str | None = None) -> HttpResponse:
        """Shows the new key in the answer itself: a redirect would have to carry it somewhere."""
        return self._show_key(request, obj, request.new_caller_key, "The caller was added.")  # type: ignore[attr-defined]

    def _show_key(
        self, request: HttpRequest, caller: Caller, key: str, done: str, *, secret: bool = False
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"{'Webhook secret' if secret else 'Key'} of {caller.name}",
            "secret": secret,
            "caller": caller,
            "key": key,
            "done": done,
            "caller_url": self._url(caller),
        }
        return TemplateResponse(request, "admin/trust/caller/key.html", context)

    def _url(self, caller: Caller) -> str:
        return reverse("admin:trust_caller_change", args=[caller.pk])

    def panels(self, request: HttpRequest, obj: Caller) -> dict[str, Any]:
        """Returns the keys, newest first, and every skill with whether it is granted."""
        granted = {grant.skill_id: grant for grant in obj.grants.all()}
        offered = {skill.pk: skill for skill in skills_of_workspace(obj.workspace_id)}
        offered |= {grant.skill_id: grant.skill for grant in granted.values()}  # disabled ones can be revoked
        return {
            "keys": list(obj.keys.order_by("-created_at", "-id")),
            "skills": [{"skill": skill, "grant": granted.get(pk)} for pk, skill in sorted(offered.items())],
            "rotate_form": RotateForm(),
            "signs": bool(obj.webhook_secret),
        }

    def get_urls(self) -> list[URLPattern]:
        """Adds what the buttons below the form post to."""
        return [
            self.post_path("rotate-key", "rotate_key", self._rotate),
            self.post_path("keys/<int:key_id>/revoke", "revoke_key", self._revoke),
            self.post_path("webhook-secret", "webhook_secret", self._webhook_secret),
            self.post_path("grant", "grant", self._grant),
            self.post_path("revoke-grant", "revoke_grant", self._revoke_grant),
            *super().get_urls(),
        ]

    def _rotate(self, request: HttpRequest, caller: Caller) -> HttpResponse:
        form = RotateForm(request.POST)
        if not form.is_valid():
            messages.error(request, "Choose how long the old key still works.")
            return redirect(self._url(caller))
        grace = timedelta(seconds=int(form.cleaned_data["grace"]))
        key = services.key_rotate(caller=caller, grace=grace)
        ends = f"work for {form.grace_label} more at most" if grace else "ended"
        self.log_change(request, caller, f"Made a new key; the old keys {ends}.")
        return self._show_key(request, caller, key, f"The old keys {ends}.")

    def _revoke(self, request: HttpRequest, caller: Caller, key_id: int) -> HttpResponse:
        key = get_object_or_404(CallerKey, pk=key_id, caller=caller)
        if services.key_revoke(key=key):
            self.log_change(request, caller, f"Revoked the key {key}.")
            messages.success(request, f"The key {key} no longer works.")
        else:
            messages.info(request, f"The key {key} was revoked before.")
        return redirect(self._url(caller))

    def _webhook_secret(self, request: HttpRequest, caller: Caller) -> HttpResponse:
        secret = services.webhook_secret_rotate(caller=caller)
        self.log_change(request, caller, "Made a new webhook secret.")
        done = "Notifications are signed with it from the next one on."
        return self._show_key(request, caller, secret, done, secret=True)

    def _grant(self, request: HttpRequest, caller: Caller) -> HttpResponse:
        try:
            grant = services.grant_add(caller=caller, slug=request.POST.get("slug", ""))
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
        else:
            self.log_change(request, caller, f"Granted {grant.skill.slug}.")
            messages.success(request, f"{caller.name} was granted {grant.skill.slug}.")
        return redirect(self._url(caller))

    def _revoke_grant(self, request: HttpRequest, caller: Caller) -> HttpResponse:
        slug = request.POST.get("slug", "")
        if services.grant_revoke(caller=caller, slug=slug):
            self.log_change(request, caller, f"Revoked the grant of {slug}.")
            messages.success(request, f"{slug} is no longer granted to {caller.name}.")
        return redirect(self._url(caller))

    @admin.action(description="Enable selected callers", permissions=["change"])
    def enable(self, request: HttpRequest, callers: QuerySet[Caller]) -> None:
        """Lets them in."""
        self._set_enabled(request, callers, enabled=True)

    @admin.action(description="Disable selected callers", permissions=["change"])
    def disable(self, request: HttpRequest, callers: QuerySet[Caller]) -> None:
        """Shuts them out."""
        self._set_enabled(request, callers, enabled=False)

    def _set_enabled(self, request: HttpRequest, callers: QuerySet[Caller], *, enabled: bool) -> None:
        word = "Enabled" if enabled else "Disabled"
        self.change_each(
            request, callers, word, lambda caller: services.caller_set_enabled(caller=caller, enabled=enabled)
        )


@admin.register(Skill)
class SkillAdmin(OwnedAdmin):
    """What callers may ask for. Built-in skills are everybody's and stay as they are."""

    owner_lookup = "workspace__owner"
    can_add = can_change = can_delete = True
    form = SkillForm
    list_display = ("name", "slug", "workspace_or_built_in", "enabled")
    list_filter = ("enabled", ("workspace", OwnRelatedFilter))
    list_select_related = ("workspace",)
    search_fields = ("name", "slug", "description")
    ordering = ("id",)
    fields = ("workspace", "slug", "name", "description", "tags", "examples", "enabled")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Returns the visitor's own skills and the built-in ones."""
        every = super(OwnedAdmin, self).get_queryset(request).select_related("workspace")
        if request.user.is_superuser:
            return every
        return every.filter(Q(workspace__owner=request.user.pk) | Q(workspace=None))

    def get_readonly_fields(self, request: HttpRequest, obj: Skill | None = None) -> tuple[str, ...]:
        """Callers know a skill by its id; in another workspace its grants would be wrong."""
        return () if obj is None else ("workspace", "slug")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Not the built-in ones."""
        return super().has_change_permission(request, obj) and (obj is None or obj.workspace_id is not None)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Not the built-in ones."""
        return super().has_delete_permission(request, obj) and (obj is None or obj.workspace_id is not None)

    @display(description="Workspace", ordering="workspace__slug", empty_value="built in")
    def workspace_or_built_in(self, obj: Skill) -> str | None:
        """Whose it is."""
        return obj.workspace.slug if obj.workspace else None


@admin.register(Grant)
class GrantAdmin(OwnedAdmin):
    """Who was granted what, over all callers. Deleting a grant revokes it."""

    owner_lookup = "caller__workspace__owner"
    can_add = can_delete = True
    form = GrantForm
    list_display = ("skill", "caller", "workspace", "created_at")
    list_filter = (("skill", OwnRelatedFilter), ("caller", OwnRelatedFilter))
    list_select_related = ("skill", "caller__workspace")
    search_fields = ("caller__name", "skill__slug")
    ordering = ("-id",)
    fields = ("caller", "skill", "created_at")
    readonly_fields = ("created_at",)

    @display(description="Workspace", ordering="caller__workspace__slug")
    def workspace(self, obj: Grant) -> str:
        """Whose caller it is."""
        return obj.caller.workspace.slug

    def save_model(self, request: HttpRequest, obj: Grant, form: Any, change: bool) -> None:
        """Grants the skill; granting twice is one grant."""
        grant = services.grant_add(caller=obj.caller, slug=obj.skill.slug)
        obj.pk, obj._state.adding = grant.pk, False

    def delete_model(self, request: HttpRequest, obj: Grant) -> None:
        """Revokes the grant."""
        services.grant_revoke(caller=obj.caller, slug=obj.skill.slug)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Grant]) -> None:
        """Revokes the grants."""
        for grant in queryset.select_related("caller", "skill"):
            self.delete_model(request, grant)


@register_card
def callers_card(request: HttpRequest) -> Card:
    """The callers that are let in."""
    callers = admin.site.get_model_admin(Caller).get_queryset(request)
    return Card(
        title="Callers",
        value=capped_count(callers.filter(enabled=True)),
        note="enabled",
        href=reverse("admin:trust_caller_changelist"),
    )

"""The owner's screens of callers, with their keys and grants. Every rule is in trust.services.

A key is only in the one response to the POST that made it. It is neither in a message, since Django keeps messages in
cookies or the session table, nor in an address.
"""

from datetime import timedelta
from typing import Any, ClassVar, Literal

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse

from trust import services
from trust.admin.caller_action_forms import OWN_LEVEL, LevelForm, ReasonForm
from trust.admin.caller_actions import CallerActions
from trust.admin.caller_forms import CallerAddForm, CallerForm, GrantForm, RotateForm
from trust.history import trust_history_of
from trust.limits import COLUMNS
from trust.models import Caller, CallerKey, Grant, Level, Skill
from trust.selectors import audit_of_caller, skills_of_workspace
from volcanic.admin.base import OwnedAdmin, OwnRelatedFilter, display
from volcanic.admin.dashboard import Card, capped_count, register_card

LEVEL_LABELS: dict[str, str | None] = {
    Level.OBSERVE: None,
    Level.LEARN: "info",
    Level.PROPOSE: "warning",
    Level.ACT: "success",
}

# The number of audit lines on a caller's page.
HISTORY_LINES = 30


@admin.register(Caller)
class CallerAdmin(CallerActions):
    """The screen of callers. A caller keeps its name, while its keys, grants, level, limits and note can change."""

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
    facts: ClassVar = ("interaction_count", "first_seen_at", "last_interaction_at", "created_at")
    fieldsets = (
        (None, {"fields": ("name", "workspace", "level", "enabled", "reason", "note")}),
        ("Limits", {"fields": COLUMNS, "classes": ("collapse",)}),
        ("Seen", {"fields": facts, "classes": ("collapse",)}),
    )
    add_fieldsets = ((None, {"fields": ("workspace", "name", "level", "skills", "note")}),)
    change_form_outer_after_template = "admin/trust/caller/access.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Returns the callers with the workspaces and grants that lists and forms show."""
        return super().get_queryset(request).select_related("workspace").prefetch_related("grants__skill")

    def get_readonly_fields(self, request: HttpRequest, obj: Caller | None = None) -> tuple[str, ...]:
        """Returns the read-only fields: a caller keeps its name and workspace."""
        return self.facts if obj is None else ("name", "workspace", *self.facts)

    def get_form(self, request: HttpRequest, obj: Caller | None = None, change: bool = False, **kwargs: Any) -> Any:
        """Returns the form. The form of a new caller asks for skills to grant, too."""
        if obj is not None:
            return super().get_form(request, obj, change, **kwargs)
        form = super().get_form(request, obj, change, form=self.add_form, **kwargs)
        # Safe to set on the class, since it was made for this request only.
        form.skill_choices = self.admin_site.get_model_admin(Skill).get_queryset(request).filter(enabled=True)  # type: ignore[attr-defined]
        return form

    @display(description="Level", ordering="level", label=LEVEL_LABELS)
    def shown_level(self, obj: Caller) -> tuple[str, str]:
        """Returns the caller's level."""
        return obj.level, obj.get_level_display()

    @display(description="Granted")
    def granted(self, obj: Caller) -> str:
        """Returns the ids of the skills that the caller is granted."""
        return ", ".join(sorted(grant.skill.slug for grant in obj.grants.all())) or "—"

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Adds a caller. After a second click on Save the name is taken, and an error is shown."""
        try:
            return super().add_view(request, form_url, extra_context)
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
        except IntegrityError:
            messages.error(request, "There is a caller with this name already. Rotate its key if you have not seen it.")
        return redirect("admin:trust_caller_changelist")

    def save_model(self, request: HttpRequest, obj: Caller, form: Any, change: bool) -> None:
        """Makes a new caller with its key and grants, or writes the changed fields of an existing caller."""
        if not change:
            slugs = [skill.slug for skill in form.cleaned_data["skills"]]
            made, key = services.caller_create(
                workspace=obj.workspace, name=obj.name, level=Level(obj.level), skills=slugs, note=obj.note
            )
            obj.pk, obj._state.adding = made.pk, False
            request.new_caller_key = key  # type: ignore[attr-defined]  # for response_add
            return
        changed, reason = set(form.changed_data), form.cleaned_data["reason"]
        if "enabled" in changed:
            services.caller_set_enabled(caller=obj, enabled=obj.enabled, reason=reason)
        if limits := changed & set(COLUMNS):
            services.caller_set_limits(caller=obj, **{name: getattr(obj, name) for name in limits})
        if "level" in changed:
            services.caller_set_level(caller=obj, level=Level(obj.level), reason=reason)
        if "note" in changed and (now := services.caller_lock(caller_id=obj.pk)):
            services.caller_update(caller=obj, level=Level(now.level), note=obj.note)

    def response_add(self, request: HttpRequest, obj: Caller, post_url_continue: str | None = None) -> HttpResponse:
        """Shows the new key in the response itself, since a redirect would have to carry the key."""
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
        """Returns the keys (newest first), the skills with their grants, the trust history and the latest audit."""
        granted = {grant.skill_id: grant for grant in obj.grants.all()}
        offered = {skill.pk: skill for skill in skills_of_workspace(obj.workspace_id)}
        offered |= {grant.skill_id: grant.skill for grant in granted.values()}  # disabled ones can be revoked
        return {
            "keys": list(obj.keys.order_by("-created_at", "-id")),
            "skills": [_skill_row(skill, granted.get(pk)) for pk, skill in sorted(offered.items())],
            "own_level": OWN_LEVEL,
            "reason_form": ReasonForm(auto_id=False),
            "trust_history": trust_history_of(obj),
            "history": audit_of_caller(obj, HISTORY_LINES),
            "rotate_form": RotateForm(),
            "signs": bool(obj.webhook_secret),
        }

    def get_urls(self) -> list[URLPattern]:
        """Adds the addresses that the buttons below the form post to."""
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
            messages.error(request, "Choose when the old keys end.")
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
        done = "The next notification is signed with the new secret."
        return self._show_key(request, caller, secret, done, secret=True)

    def _grant(self, request: HttpRequest, caller: Caller) -> HttpResponse:
        form = LevelForm(request.POST)
        if not form.is_valid():
            messages.error(request, "Choose a level from the list.")
            return redirect(self._url(caller))
        try:
            grant = services.grant_add(caller=caller, slug=request.POST.get("slug", ""), level=form.chosen_level)
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
        else:
            level = grant.get_level_display() if grant.level else OWN_LEVEL
            self.log_change(request, caller, f"Granted {grant.skill.slug}. Level: {level}.")
            messages.success(request, f"{caller.name} was granted {grant.skill.slug}. Level: {level}.")
        return redirect(self._url(caller))

    def _revoke_grant(self, request: HttpRequest, caller: Caller) -> HttpResponse:
        slug, stop = request.POST.get("slug", ""), request.POST.get("stop") == "1"
        form = ReasonForm(request.POST)
        if not form.is_valid():
            messages.error(request, "The reason is too long.")
        elif services.grant_revoke(caller=caller, slug=slug, stop=stop, reason=form.cleaned_data["reason"]):
            stopped = " Runs on this grant are stopped, too." if stop else ""
            self.log_change(request, caller, f"Revoked the grant of {slug}.{stopped}")
            messages.success(request, f"{slug} is no longer granted to {caller.name}.{stopped}")
        return redirect(self._url(caller))


def _skill_row(skill: Skill, grant: Grant | None) -> dict[str, Any]:
    form = LevelForm(auto_id=False, initial={"level": grant.level if grant else ""})
    return {"skill": skill, "grant": grant, "form": form}


@admin.register(Grant)
class GrantAdmin(OwnedAdmin):
    """The screen of all callers' grants. Deleting a grant revokes it."""

    owner_lookup = "caller__workspace__owner"
    can_add = can_delete = True
    form = GrantForm
    list_display = ("skill", "caller", "workspace", "shown_level", "created_at")
    list_filter = (("skill", OwnRelatedFilter), ("caller", OwnRelatedFilter))
    list_select_related = ("skill", "caller__workspace")
    search_fields = ("caller__name", "skill__slug")
    ordering = ("-id",)
    readonly_fields = ("shown_level", "created_at")

    def get_fields(self, request: HttpRequest, obj: Grant | None = None) -> tuple[str, ...]:
        """Returns the fields to choose for a new grant, or the fields to show of an existing one."""
        return ("caller", "skill", "level") if obj is None else ("caller", "skill", "shown_level", "created_at")

    @display(description="Workspace", ordering="caller__workspace__slug")
    def workspace(self, obj: Grant) -> str:
        """Returns the slug of the caller's workspace."""
        return obj.caller.workspace.slug

    @display(description="Level", ordering="level")
    def shown_level(self, obj: Grant) -> str:
        """Returns the caller's level for this skill."""
        return obj.get_level_display() if obj.level else OWN_LEVEL

    def save_model(self, request: HttpRequest, obj: Grant, form: Any, change: bool) -> None:
        """Grants the skill at the level. A second grant of the same skill changes the first one."""
        level: Level | Literal[""] = Level(obj.level) if obj.level else ""
        grant = services.grant_add(caller=obj.caller, slug=obj.skill.slug, level=level)
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
    """Returns the card with the number of enabled callers."""
    callers = admin.site.get_model_admin(Caller).get_queryset(request)
    return Card(
        title="Callers",
        value=capped_count(callers.filter(enabled=True)),
        note="enabled",
        href=reverse("admin:trust_caller_changelist"),
    )

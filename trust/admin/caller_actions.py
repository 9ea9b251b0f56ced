"""Actions on the callers selected in the list. An action that needs a choice or a confirmation has its own page."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from trust import services
from trust.admin.caller_action_forms import GrantSkillForm, ReasonForm, RevokeSkillForm
from trust.models import Caller, Level, Skill
from trust.selectors import skills_of_workspace
from volcanic.admin.base import CHOICES, OwnedAdmin

Choices = list[tuple[str, str]]


class CallerActions(OwnedAdmin):
    """The actions on selected callers. Each works only on the visitor's own callers, as the list does."""

    actions = (
        "enable",
        "disable",
        "grant_skill",
        "revoke_skill",
        "level_observe",
        "level_learn",
        "level_propose",
        "level_act",
    )
    # The most callers of one action, since the page that asks names each of them.
    most_selected: ClassVar = CHOICES

    @admin.action(description="Enable selected callers", permissions=["change"])
    def enable(self, request: HttpRequest, callers: QuerySet[Caller]) -> None:
        """Enables the selected callers."""
        self.change_each(request, callers, "Enabled", lambda one: services.caller_set_enabled(caller=one, enabled=True))

    @admin.action(description="Disable selected callers", permissions=["change"])
    def disable(self, request: HttpRequest, callers: QuerySet[Caller]) -> None:
        """Disables the selected callers."""
        self.change_each(
            request, callers, "Disabled", lambda one: services.caller_set_enabled(caller=one, enabled=False)
        )

    @admin.action(description="Grant a skill to selected callers…", permissions=["change"])
    def grant_skill(self, request: HttpRequest, callers: QuerySet[Caller]) -> HttpResponse | None:
        """Asks for a skill and grants it to the selected callers."""
        workspaces = callers.order_by().prefetch_related(None).values_list("workspace", flat=True).distinct()
        skills = [skill for pk in workspaces for skill in skills_of_workspace(pk)]
        form = GrantSkillForm(self._answer(request), skills=_choices(skills))
        if not form.is_valid():
            return self._ask(request, callers, form, "grant_skill", "Grant a skill")
        slug, level, reason = form.cleaned_data["slug"], form.chosen_level, form.cleaned_data["reason"]
        without: list[str] = []

        def grant(caller: Caller) -> bool:
            before = {one.skill.slug: one.level for one in caller.grants.all()}
            try:
                granted = services.grant_add(caller=caller, slug=slug, level=level, reason=reason)
            except ValidationError:
                without.append(caller.name)
                return False
            return before.get(slug) != granted.level

        self.change_each(request, callers, f"Granted {slug}", grant)
        if without:
            messages.warning(request, f"There is no skill {slug} in the workspace of: {', '.join(without)}.")
        return None

    @admin.action(description="Revoke a skill of selected callers…", permissions=["change"])
    def revoke_skill(self, request: HttpRequest, callers: QuerySet[Caller]) -> HttpResponse | None:
        """Asks for one of the skills that the selected callers have, and revokes its grants."""
        granted = Skill.objects.filter(grants__caller__in=callers.order_by().values("pk")).distinct()
        form = RevokeSkillForm(self._answer(request), skills=_choices(granted.order_by("id")))
        if not form.is_valid():
            return self._ask(request, callers, form, "revoke_skill", "Revoke a skill")
        values = {name: form.cleaned_data[name] for name in ("slug", "stop", "reason")}
        word = f"Revoked {values['slug']}{', and ended the runs on it' if values['stop'] else ''}"
        self.change_each(request, callers, word, lambda caller: services.grant_revoke(caller=caller, **values))
        return None

    @admin.action(description="Set the level to Observe", permissions=["change"])
    def level_observe(self, request: HttpRequest, callers: QuerySet[Caller]) -> None:
        """Sets the level to Observe: plain requests wait for the owner."""
        self._set_level(request, callers, Level.OBSERVE)

    @admin.action(description="Set the level to Learn", permissions=["change"])
    def level_learn(self, request: HttpRequest, callers: QuerySet[Caller]) -> None:
        """Sets the level to Learn: the assistant learns from the owner's decisions about the callers."""
        self._set_level(request, callers, Level.LEARN)

    @admin.action(description="Set the level to Propose", permissions=["change"])
    def level_propose(self, request: HttpRequest, callers: QuerySet[Caller]) -> None:
        """Sets the level to Propose: reviews offer to handle such requests from now on."""
        self._set_level(request, callers, Level.PROPOSE)

    @admin.action(description="Set the level to Act…", permissions=["change"])
    def level_act(self, request: HttpRequest, callers: QuerySet[Caller]) -> HttpResponse | None:
        """Sets the level to Act after a confirmation: granted requests are done at once."""
        form = ReasonForm(self._answer(request))
        if not form.is_valid():
            return self._ask(request, callers, form, "level_act", "Set the level to Act")
        self._set_level(request, callers, Level.ACT, form.cleaned_data["reason"])
        return None

    def _set_level(self, request: HttpRequest, callers: QuerySet[Caller], level: Level, reason: str = "") -> None:
        def change(caller: Caller) -> bool:
            return services.caller_set_level(caller=caller, level=level, reason=reason)

        self.change_each(request, callers, f"Set the level to {level.label}", change)

    def _answer(self, request: HttpRequest) -> Any:
        """Returns the data posted from the page that asks, or None if the page was not shown yet."""
        return request.POST if "answered" in request.POST else None

    def _ask(
        self, request: HttpRequest, callers: QuerySet[Caller], form: ReasonForm, action: str, title: str
    ) -> HttpResponse | None:
        """Returns the page that asks. It names the selected callers, and only these callers are changed."""
        rows = list(callers[: self.most_selected + 1])
        if len(rows) > self.most_selected:
            messages.error(request, f"Select at most {self.most_selected} callers.")
            return None
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": title,
            "form": form,
            "action": action,
            "callers": rows,
            "checkbox": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/trust/caller/ask.html", context)


def _choices(skills: Any) -> Choices:
    """Returns a choice for each id once, since skills of several workspaces may have the same id."""
    return list({skill.slug: (skill.slug, f"{skill.name} ({skill.slug})") for skill in skills}.values())

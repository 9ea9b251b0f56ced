"""The owner's screen of drafts: proposals of a skill for one caller, learned from decisions that were alike.

Every rule about drafts and their approval is in trust.learning.services.
"""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, reverse

from trust.admin.draft_forms import DraftForm, RejectForm, VersionForm
from trust.admin.draft_pages import STATE_LABELS, draft_shown, keep_unsent, take_unsent
from trust.errors import DraftDecidedError
from trust.learning.services import EDITABLE, draft_approve, draft_reject, draft_update
from trust.models import SkillDraft
from volcanic.admin.base import OwnedAdmin, OwnRelatedFilter, display, moment
from volcanic.admin.dashboard import Card, capped_count, register_card

State = SkillDraft.State

_OPEN_FIRST = Case(When(state=State.OPEN, then=Value(0)), default=Value(1), output_field=IntegerField())


@admin.register(SkillDraft)
class SkillDraftAdmin(OwnedAdmin):
    """The screen of drafts. The owner edits, approves or rejects a draft."""

    owner_lookup = "caller__workspace__owner"
    list_display = ("name", "caller", "shown_state", "requests", "shown_source", "learned")
    list_filter = ("state", ("caller", OwnRelatedFilter), "source")
    list_select_related = ("caller__workspace",)
    list_defer = ("description", "examples", "instructions", "preview", "preview_problem", "note", "decision_text")
    search_fields = ("name", "slug", "description", "instructions", "caller__name")
    search_help_text = "Words of the draft, its id, or a caller"
    ordering = (_OPEN_FIRST, "-id")
    sortable_by = ()
    fieldsets = (("Details", {"fields": ("slug", "source", "version", "created_at"), "classes": ("collapse",)}),)
    change_form_outer_before_template = "admin/trust/draft/page.html"
    change_form_template = "admin/trust/review/change_form.html"

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Lists the drafts under the title "Drafts"."""
        return super().changelist_view(request, {"title": "Drafts", **(extra_context or {})})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Returns the drafts with their callers and skills."""
        return super().get_queryset(request).select_related("caller__workspace", "skill")

    @display(description="State", label=STATE_LABELS)
    def shown_state(self, obj: SkillDraft) -> tuple[str, str]:
        """Returns the state of the draft, with its colour."""
        return obj.state, obj.get_state_display()

    @display(description="Requests")
    def requests(self, obj: SkillDraft) -> int:
        """Returns the number of decisions that the draft was learned from."""
        return len(obj.evidence)

    @display(description="Written by")
    def shown_source(self, obj: SkillDraft) -> str:
        """Returns the author of the text: the assistant or a rule."""
        return obj.get_source_display()

    @display(description="Since")
    def learned(self, obj: SkillDraft) -> str:
        """Returns the time of the first proposal."""
        return moment(obj.created_at)

    def panels(self, request: HttpRequest, obj: SkillDraft) -> dict[str, Any]:
        """Returns the data of the page. Its forms name the version that is shown."""
        unsent = take_unsent(request, obj) if obj.state == State.OPEN else None
        return {"one": draft_shown(obj, unsent=unsent)}

    def get_urls(self) -> list[URLPattern]:
        """Adds the addresses that the buttons post to."""
        return [
            self.post_path("approve", "approve", self._approve),
            self.post_path("edit", "edit", self._edit),
            self.post_path("reject", "reject", self._reject),
            *super().get_urls(),
        ]

    def _approve(self, request: HttpRequest, draft: SkillDraft) -> HttpResponse:
        form = VersionForm(request.POST)
        if not form.is_valid():
            return self._refused(request, draft, "Look at the draft again.")

        def approve() -> str:
            skill = draft_approve(draft=draft, version=form.cleaned_data["version"])
            self.log_change(request, draft, "Approved.")
            return (
                f"From now on requests of {draft.caller.name} that the draft covers are handled "
                f"by the skill {skill.name}."
            )

        return self._answer(request, draft, approve)

    def _edit(self, request: HttpRequest, draft: SkillDraft) -> HttpResponse:
        form = DraftForm(request.POST, initial={name: getattr(draft, name) for name in EDITABLE})
        if not form.is_valid():
            keep_unsent(request, draft)
            return self._refused(request, draft, "Not saved: see below.")
        changed = {name: form.cleaned_data[name] for name in EDITABLE if name in form.changed_data}
        if not changed:
            messages.info(request, "Nothing was changed.")
            return redirect(_url(draft))

        def edit() -> str:
            try:
                draft_update(draft=draft, version=form.cleaned_data["version"], **changed)
            except (DraftDecidedError, ValidationError):
                keep_unsent(request, draft)  # the owner need not type the edits again
                raise
            self.log_change(request, draft, f"Edited: {', '.join(changed)}.")
            return "Saved. The draft is tried again."

        return self._answer(request, draft, edit)

    def _reject(self, request: HttpRequest, draft: SkillDraft) -> HttpResponse:
        form = RejectForm(request.POST)
        if not form.is_valid():
            problems = [str(text) for name in form.errors for text in form.errors[name]]
            return self._refused(request, draft, " ".join(problems))

        def reject() -> str:
            draft_reject(draft=draft, version=form.cleaned_data["version"], reason=form.cleaned_data["text"])
            self.log_change(request, draft, "Rejected.")
            return "Rejected. Such requests still come to you, and are not proposed again."

        answer = self._answer(request, draft, reject)
        review = request.POST.get("review", "")
        if review.isascii() and review.isdigit() and len(review) < 19:
            return redirect("admin:trust_review_change", int(review))  # the card is on this review's page
        return answer

    def _answer(self, request: HttpRequest, draft: SkillDraft, change: Callable[[], str]) -> HttpResponse:
        """Calls `change`, shows its text or the reason why it failed, and redirects to the draft."""
        try:
            messages.success(request, change())
        except DraftDecidedError as error:
            return self._refused(request, draft, str(error))
        except ValidationError as error:
            return self._refused(request, draft, " ".join(error.messages))
        return redirect(_url(draft))

    def _refused(self, request: HttpRequest, draft: SkillDraft, problem: str) -> HttpResponse:
        messages.error(request, problem)
        return redirect(_url(draft))


def _url(draft: SkillDraft) -> str:
    return reverse("admin:trust_skilldraft_change", args=[draft.pk])


@register_card
def drafts_card(request: HttpRequest) -> Card:
    """Returns the card with the number of open drafts."""
    drafts = admin.site.get_model_admin(SkillDraft).get_queryset(request)
    return Card(
        title="Drafts",
        value=capped_count(drafts.filter(state=State.OPEN)),
        note="proposed",
        href=reverse("admin:trust_skilldraft_changelist") + f"?state__exact={State.OPEN}",
    )

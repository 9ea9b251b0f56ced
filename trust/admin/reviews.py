"""The owner's screens of reviews and of decisions. Every rule about decisions is in trust.decisions."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import ValidationError
from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html, format_html_join

from trust.admin.review_forms import DecisionForm, DeclineForm
from trust.admin.review_pages import STATE_LABELS, keep_unsent, shown, take_unsent
from trust.decisions import review_decide
from trust.errors import ReviewChangedError, ReviewError
from trust.learning.services import observations_reverse
from trust.models import CallerKey, Observation, Review
from trust.outcomes import outcome
from volcanic.admin.base import CHOICES, OwnedAdmin, OwnRelatedFilter, display, is_owner, moment, task_url
from volcanic.admin.dashboard import Card, Section, capped_count, register_card, register_section
from volcanic.text import cut

Decision = Observation.Decision
State = Review.State

ON_FIRST_PAGE = 10
LINE = 90
# Posted by forms on the first page. A decision there leads back there, to the next request that waits.
FROM_FIRST_PAGE = "first-page"
_PENDING_FIRST = Case(
    When(state=State.PENDING, then=Value(0)),
    When(state=State.ASKED, then=Value(1)),
    default=Value(2),
    output_field=IntegerField(),
)


@admin.register(Review)
class ReviewAdmin(OwnedAdmin):
    """The screen of reviews, waiting and decided. Only a decision changes a review."""

    owner_lookup = "caller__workspace__owner"
    list_display = ("line", "caller", "shown_level", "skill", "shown_state", "since", "ends")
    list_filter = ("state", ("caller", OwnRelatedFilter), "level")
    list_select_related = ("caller__workspace",)
    list_defer = ("request", "messages", "thread", "files", "suggestion", "note", "decision_text")
    search_fields = ("request", "summary", "caller__name")
    search_help_text = "Words of the request or its summary, or a caller"
    ordering = (_PENDING_FIRST, "-id")
    sortable_by = ()
    actions = ("decline",)
    fieldsets = (("Details", {"fields": ("context_id", "task", "shown_keys", "digest"), "classes": ("collapse",)}),)
    change_form_outer_before_template = "admin/trust/review/page.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Returns the reviews with their callers and drafts, and the beginning of each request."""
        rows = super().get_queryset(request).select_related("caller__workspace", "draft__caller", "draft__skill")
        annotated: QuerySet[Any] = rows.annotate(asked=Left("request", LINE))
        return annotated

    @display(description="Request")
    def line(self, obj: Review) -> str:
        """Returns the assistant's summary, or the beginning of the request."""
        text = obj.summary or getattr(obj, "asked", "") or "(a message without text)"
        # A text of LINE characters was cut by the query, so it gets its ellipsis here.
        return cut(text, LINE - 1)

    @display(description="Level")
    def shown_level(self, obj: Review) -> str:
        """Returns the caller's level at the time of the request."""
        return obj.get_level_display()

    @display(description="State", label=STATE_LABELS)
    def shown_state(self, obj: Review) -> tuple[str, str]:
        """Returns the state of the review, with its colour."""
        return obj.state, obj.get_state_display()

    @display(description="Waits since")
    def since(self, obj: Review) -> str:
        """Returns the time at which the request was put before the owner."""
        return moment(obj.created_at)

    @display(description="Ends", empty_value="—")
    def ends(self, obj: Review) -> str | None:
        """Returns the time at which a waiting review expires."""
        return moment(obj.expires_at) if obj.state in Review.WAITING else None

    @display(description="Came with", empty_value="—")
    def shown_keys(self, obj: Review) -> str | None:
        """Returns the keys of the review's messages that still exist."""
        return ", ".join(str(key) for key in CallerKey.objects.filter(pk__in=obj.keys).order_by("id")) or None

    def panels(self, request: HttpRequest, obj: Review) -> dict[str, Any]:
        """Returns the data of the page from one read of the row, so that the form's digest fits the shown content."""
        unsent = take_unsent(request) if obj.state == State.PENDING else {}
        (one,) = shown([obj], unsent=unsent)
        return {"one": one, "pending": obj.state == State.PENDING}

    def get_urls(self) -> list[URLPattern]:
        """Adds the address that the decision's buttons post to."""
        return [self.post_path("decide", "decide", self._decide), *super().get_urls()]

    def _decide(self, request: HttpRequest, review: Review) -> HttpResponse:
        form = DecisionForm(request.POST)
        page = redirect("admin:trust_review_change", review.pk)
        if not form.is_valid():
            messages.error(request, "Choose one of the buttons.")
            keep_unsent(request, review, request.POST.get("text", ""))
            return page
        decision, text = Decision(form.cleaned_data["decision"]), form.cleaned_data["text"]
        if problem := self._take(request, review, decision, form.cleaned_data["digest"], text):
            messages.error(request, problem)
            return page
        review.refresh_from_db(fields=["skill"])  # a draft may have become a skill
        messages.success(request, outcome(review, decision))
        if request.POST.get("from") == FROM_FIRST_PAGE:
            return redirect("admin:index")
        following = self.get_queryset(request).filter(state=State.PENDING).order_by("id").values_list("pk", flat=True)
        for pk in following[:1]:
            return redirect("admin:trust_review_change", pk)
        return redirect("admin:trust_review_changelist")

    def _take(self, request: HttpRequest, review: Review, decision: Decision, digest: str, text: str) -> str:
        """Takes a decision. Returns "", or the reason why it failed; then a text that may be sent again is kept."""
        try:
            review_decide(review_id=review.pk, decision=decision, digest=digest, text=text)
        except (ValidationError, ReviewError) as error:
            if isinstance(error, (ValidationError, ReviewChangedError)):
                keep_unsent(request, review, text)
            return " ".join(error.messages) if isinstance(error, ValidationError) else str(error)
        self.log_change(request, review, f"{decision.label}.")
        return ""

    @admin.action(description="Decline selected…", permissions=["view"])
    def decline(self, request: HttpRequest, reviews: QuerySet[Review]) -> HttpResponse | None:
        """Asks for a reason, and declines the requests that still wait unchanged since this page showed them."""
        rows = list(reviews.filter(state=State.PENDING).order_by("id")[: CHOICES + 1])
        if not rows or len(rows) > CHOICES:
            messages.error(request, f"Select at most {CHOICES} requests." if rows else "No selected request waits.")
            return None
        form = DeclineForm(request.POST if "answered" in request.POST else None)
        if not form.is_valid():
            context = {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": "Decline",
                "form": form,
                "reviews": rows,
                "checkbox": ACTION_CHECKBOX_NAME,
            }
            return TemplateResponse(request, "admin/trust/review/decline.html", context)
        problems: dict[str, int] = {}
        for review in rows:
            digest = request.POST.get(f"digest-{review.pk}", "")
            problem = self._take(request, review, Decision.DECLINE, digest, form.cleaned_data["text"])
            problems[problem] = problems.get(problem, 0) + 1
        messages.success(request, f"Declined: {problems.pop('', 0)}.")
        for problem, times in problems.items():
            messages.warning(request, f"Not declined: {times}. {problem}")
        return None


@admin.register(Observation)
class ObservationAdmin(OwnedAdmin):
    """The screen of the owner's decisions, from which the assistant learns. The owner can take decisions back."""

    owner_lookup = "caller__workspace__owner"
    list_display = ("line", "caller", "skill", "shown_decision", "words", "at")
    list_filter = ("decision", ("caller", OwnRelatedFilter), "created_at")
    list_select_related = ("caller__workspace",)
    search_fields = ("request", "reply", "edits", "caller__name")
    search_help_text = "Words of the request, of your reply or instruction, or a caller"
    ordering = ("-id",)
    sortable_by = ()
    actions = ("take_back",)
    fields: ClassVar = (
        "caller",
        "skill",
        "decided",
        "full_request",
        "full_reply",
        "full_edits",
        "created_at",
        "reversed_at",
        "links",
    )
    readonly_fields: ClassVar = fields

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Lists the observations under the title "Decisions"."""
        return super().changelist_view(request, {"title": "Decisions", **(extra_context or {})})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Returns the observations with their callers."""
        return super().get_queryset(request).select_related("caller__workspace")

    @admin.action(description="Take back: learn nothing from these", permissions=["view"])
    def take_back(self, request: HttpRequest, observations: QuerySet[Observation]) -> None:
        """Takes the decisions back: nothing is learned from them, and open drafts that rest on them are withdrawn.

        Runs and answers of the past stay.
        """
        rows = list(observations.filter(reversed_at=None))
        done = observations_reverse(ids=[row.pk for row in rows], reason="Taken back by the owner.")
        for row in rows:
            self.log_change(request, row, "Taken back.")
        messages.success(request, f"Taken back: {done}. The assistant learns nothing from these decisions.")

    @display(description="Request")
    def line(self, obj: Observation) -> str:
        """Returns the beginning of the request."""
        return cut(obj.request, LINE) or "(a message without text)"

    @display(
        description="Decision",
        label={
            Decision.APPROVE: "success",
            Decision.GRANT: "success",
            Decision.REPLY: "primary",
            Decision.ASK: "info",
            Decision.DECLINE: "danger",
            Decision.UNLIKE: "warning",
        },
    )
    def shown_decision(self, obj: Observation) -> tuple[str, str]:
        """Returns the owner's decision, with its colour."""
        return obj.decision, obj.get_decision_display() + (" (taken back)" if obj.reversed_at else "")

    @display(description="Decision")
    def decided(self, obj: Observation) -> str:
        """Returns the owner's decision in words."""
        return self.shown_decision(obj)[1]

    @display(description="Your words", empty_value="—")
    def words(self, obj: Observation) -> str | None:
        """Returns the beginning of the reply or instruction."""
        return cut(obj.reply or obj.edits, LINE) or None

    @display(description="At")
    def at(self, obj: Observation) -> str:
        """Returns the time of the decision."""
        return moment(obj.created_at)

    @display(description="Request")
    def full_request(self, obj: Observation) -> str:
        """Returns the whole request in the caller's words."""
        return format_html('<div class="volcanic-text">{}</div>', obj.request)

    @display(description="What the caller was told")
    def full_reply(self, obj: Observation) -> str:
        """Returns the owner's reply, question or reason."""
        return format_html('<div class="volcanic-text">{}</div>', obj.reply) if obj.reply else "—"

    @display(description="Instruction to the assistant")
    def full_edits(self, obj: Observation) -> str:
        """Returns the owner's instruction to the assistant."""
        return format_html('<div class="volcanic-text">{}</div>', obj.edits) if obj.edits else "—"

    @display(description="See also")
    def links(self, obj: Observation) -> str:
        """Returns links to the review and the task, if they still exist."""
        review = "" if obj.review_id is None else reverse("admin:trust_review_change", args=[obj.review_id])
        links = [(url, name) for url, name in ((review, "Review"), (task_url(obj.task), "Task")) if url]
        return format_html_join(" ", '<a href="{}">{}</a>', links) or "—"


def _waiting(request: HttpRequest) -> QuerySet[Review]:
    """Returns the reviews that wait for the visitor, the oldest first."""
    rows: QuerySet[Review] = admin.site.get_model_admin(Review).get_queryset(request).filter(state=State.PENDING)
    return rows.order_by("id")


def _list_url() -> str:
    return reverse("admin:trust_review_changelist") + f"?state__exact={State.PENDING}"


def waiting_badge(request: HttpRequest) -> str:
    """Returns the number of requests that wait for the visitor, "" for zero. The setting UNFOLD names this function."""
    count = capped_count(_waiting(request)) if is_owner(request) else "0"
    return "" if count == "0" else count


@register_section
def waiting_section(request: HttpRequest) -> Section | None:
    """Returns the section of the first page in which waiting requests are decided; None if no request waits."""
    rows = list(_waiting(request)[: ON_FIRST_PAGE + 1])
    if not rows:
        return None
    context = {
        "waiting": shown(rows[:ON_FIRST_PAGE], unsent=take_unsent(request)),
        "more": len(rows) > ON_FIRST_PAGE,
        "list_url": _list_url(),
        "from": FROM_FIRST_PAGE,
    }
    return Section(template="admin/trust/review/waiting.html", context=context)


@register_card
def waiting_card(request: HttpRequest) -> Card:
    """Returns the card with the number of waiting requests. A partial index makes the count cheap."""
    return Card(
        title="Waiting for you",
        value=capped_count(_waiting(request)),
        note="requests to decide",
        href=_list_url(),
    )

"""The owner's admin screens for tasks: reading, canceling and pinning them, and "not like this"."""

import uuid
from contextlib import suppress
from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import URLPattern, reverse
from django.utils.html import format_html

from a2a_server import services
from a2a_server.admin.shown import artifact_shown, event_shown, message_shown
from a2a_server.errors import RequestError
from a2a_server.models import RUNNING, TERMINAL, Task, TaskState
from a2a_server.pruning import task_set_pinned
from a2a_server.services.unlike import granted_skill, task_unlike, unlike_told
from trust.admin.draft_forms import WordsForm
from volcanic.admin.base import OwnedAdmin, OwnRelatedFilter, display, moment
from volcanic.admin.dashboard import Card, Listing, capped_count, register_card, register_listing
from volcanic.admin.transcript import pretty
from volcanic.text import one_way

EVENTS_PER_PAGE = 100
RECENT = 8
ASKED = 90
STATE_LABELS: dict[str, str | None] = {
    TaskState.SUBMITTED: "info",
    TaskState.WORKING: "primary",
    TaskState.INPUT_REQUIRED: "warning",
    TaskState.AUTH_REQUIRED: "warning",
    TaskState.COMPLETED: "success",
    TaskState.FAILED: "danger",
    TaskState.CANCELED: None,
    TaskState.REJECTED: "danger",
}


@admin.register(Task)
class TaskAdmin(OwnedAdmin):
    """The tasks of callers, the newest status first. Only the services change a task."""

    owner_lookup = "caller__workspace__owner"
    list_display = ("request_text", "shown_state", "caller", "short_context", "pinned", "changed", "created")
    list_filter = ("state", "pinned", ("caller", OwnRelatedFilter), "status_at", "created_at")
    list_select_related = ("caller__workspace",)
    list_defer = ("history", "status_message", "metadata", "accepted_output_modes")
    search_fields = ("id", "context_id")
    search_help_text = "Task id, or the beginning of a context id"
    ordering = ("-status_at", "-id")
    actions = ("cancel", "pin", "unpin")
    fieldsets = (
        (None, {"fields": ("id", "caller_link", "session_link", "context_id", "created_at", "status_at", "pinned")}),
        (
            "Run",
            {
                "fields": ("attempt", "worker", "lease_expires_at", "enqueued_at", "hops", "shown_metadata"),
                "classes": ("collapse",),
            },
        ),
    )
    readonly_fields = ("id", "caller_link", "session_link", "shown_metadata")
    change_form_outer_before_template = "admin/a2a_server/task_state.html"
    change_form_outer_after_template = "admin/a2a_server/task_log.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Returns the tasks, each with its caller and the beginning of its first message as `asked`."""
        text = KeyTextTransform("text", KeyTransform("0", KeyTransform("parts", KeyTransform("0", "history"))))
        rows = super().get_queryset(request).select_related("caller__workspace")
        annotated: QuerySet[Any] = rows.annotate(asked=Left(text, ASKED))
        return annotated

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Finds a task by its id, or tasks by the beginning of their context id, in letter case as stored.

        Indexes serve both kinds of search.
        """
        term = search_term.strip()
        if not term:
            return queryset, False
        found = Q(context_id__startswith=term)
        with suppress(ValueError):
            found |= Q(pk=uuid.UUID(term))
        return queryset.filter(found), False

    @display(description="Request")
    def request_text(self, obj: Task) -> str:
        """Returns the beginning of the first message, or the task's id if that message has no text."""
        asked = getattr(obj, "asked", None)
        if not asked:
            return str(obj.pk)
        return one_way(f"{asked}…" if len(asked) == ASKED else str(asked))

    @display(description="State", ordering="state", label=STATE_LABELS)
    def shown_state(self, obj: Task) -> tuple[str, str]:
        """Returns the state and its label, which the admin shows in the state's colour."""
        return obj.state, obj.get_state_display()

    @display(description="Context", ordering="context_id")
    def short_context(self, obj: Task) -> str:
        """Returns the context id, cut to 8 characters when it is longer than 12."""
        return obj.context_id if len(obj.context_id) <= 12 else f"{obj.context_id[:8]}…"

    @display(description="Last change", ordering="status_at")
    def changed(self, obj: Task) -> str:
        """Returns the time of the last change of the status."""
        return moment(obj.status_at)

    @display(description="Created", ordering="created_at")
    def created(self, obj: Task) -> str:
        """Returns the time at which the task was made."""
        return moment(obj.created_at)

    @display(description="Caller")
    def caller_link(self, obj: Task) -> str:
        """Returns a link to the caller's page."""
        return format_html(
            '<a href="{}">{}</a>', reverse("admin:trust_caller_change", args=[obj.caller_id]), obj.caller
        )

    @display(description="Session")
    def session_link(self, obj: Task) -> str:
        """Returns a link to the session's page with the transcript."""
        url = reverse("admin:volcanic_session_change", args=[obj.session_id])
        return format_html('<a href="{}">{}</a>', url, obj.session)

    @display(description="Metadata")
    def shown_metadata(self, obj: Task) -> str:
        """Returns the request's metadata as indented JSON, or "" without metadata."""
        return format_html("<pre>{}</pre>", pretty(obj.metadata)) if obj.metadata else ""

    def panels(self, request: HttpRequest, obj: Task) -> dict[str, Any]:
        """Returns the messages, the artifacts and one page of the event log.

        The query parameter `after` is the number of the last event on the page before; the page goes on behind it.
        """
        after = request.GET.get("after", "")
        start = int(after) if after.isascii() and after.isdigit() and len(after) < 10 else 0
        events = list(obj.events.filter(seq__gt=start).order_by("seq")[: EVENTS_PER_PAGE + 1])
        more = len(events) > EVENTS_PER_PAGE
        del events[EVENTS_PER_PAGE:]
        return {
            "state_label": STATE_LABELS.get(obj.state),
            "cancelable": obj.state not in TERMINAL,
            "status_text": message_shown(obj.status_message) if obj.status_message else None,
            "conversation": [message_shown(message) for message in obj.history],
            "artifacts": [artifact_shown(one.artifact_id, one.payload) for one in obj.artifacts.order_by("id")],
            "events": [{"event": event, **event_shown(event.payload)} for event in events],
            "events_start": start,
            "events_after": events[-1].seq if more else None,
            "granted_skill": granted_skill(obj),
            "unlike_form": WordsForm(auto_id="unlike-%s"),
        }

    def get_urls(self) -> list[URLPattern]:
        """Adds the addresses to which the buttons "Cancel the task" and "Not like this" post."""
        return [
            self.post_path("cancel", "cancel", self._cancel_one),
            self.post_path("unlike", "unlike", self._unlike),
            *super().get_urls(),
        ]

    def _cancel_one(self, request: HttpRequest, task: Task) -> HttpResponse:
        problem = self._cancel(request, task)
        if problem:
            messages.error(request, problem)
        else:
            messages.success(request, "The task was canceled.")
        return redirect("admin:a2a_server_task_change", task.pk)

    def _cancel(self, request: HttpRequest, task: Task) -> str:
        """Cancels a task. Returns "", or the reason when the task can't be canceled."""
        try:
            services.task_cancel(task_id=task.pk, caller_id=task.caller_id)
        except RequestError as error:
            return str(error)
        self.log_change(request, task, "Canceled.")
        return ""

    def _unlike(self, request: HttpRequest, task: Task) -> HttpResponse:
        form = WordsForm(request.POST)
        if not form.is_valid():
            messages.error(request, " ".join(map(str, form.errors["text"])))
        elif slug := task_unlike(task=task, text=form.cleaned_data["text"]):
            told = unlike_told(task, slug)
            self.log_change(request, task, f"Not like this. {told}")
            messages.success(request, told)
        else:
            messages.error(request, "This task ran on no grant that could be taken back.")
        return redirect("admin:a2a_server_task_change", task.pk)

    @admin.action(description="Cancel selected tasks", permissions=["view"])
    def cancel(self, request: HttpRequest, tasks: QuerySet[Task]) -> None:
        """Cancels the selected tasks that have not ended."""
        open_tasks = list(tasks.exclude(state__in=TERMINAL))
        done = sum(not self._cancel(request, task) for task in open_tasks)
        messages.success(request, f"Canceled: {done}. Tasks that have ended stay as they are.")

    @admin.action(description="Pin selected tasks: never prune them", permissions=["view"])
    def pin(self, request: HttpRequest, tasks: QuerySet[Task]) -> None:
        """Keeps the selected tasks from being pruned."""
        self._set_pinned(request, tasks, pinned=True)

    @admin.action(description="Unpin selected tasks", permissions=["view"])
    def unpin(self, request: HttpRequest, tasks: QuerySet[Task]) -> None:
        """Lets the selected tasks be pruned when they are older than RETENTION_DAYS."""
        self._set_pinned(request, tasks, pinned=False)

    def _set_pinned(self, request: HttpRequest, tasks: QuerySet[Task], *, pinned: bool) -> None:
        word = "Pinned" if pinned else "Unpinned"
        self.change_each(request, tasks, word, lambda task: task_set_pinned(task_id=task.pk, pinned=pinned))


@register_card
def running_card(request: HttpRequest) -> Card:
    """Returns the dashboard card with the number of submitted and working tasks. A partial index finds them."""
    tasks = admin.site.get_model_admin(Task).get_queryset(request)
    return Card(
        title="Tasks running",
        value=capped_count(tasks.filter(state__in=RUNNING)),
        note="submitted or working",
        href=reverse("admin:a2a_server_task_changelist"),
    )


@register_listing
def recent_tasks(request: HttpRequest) -> Listing:
    """Returns the dashboard listing of the RECENT tasks whose status changed last."""
    screen = admin.site.get_model_admin(Task)
    assert isinstance(screen, TaskAdmin)
    tasks = screen.get_queryset(request).defer(*screen.list_defer).order_by(*screen.ordering)[:RECENT]
    rows = [_task_row(task, screen) for task in tasks]
    headers = ("Request", "State", "Caller", "Last change")
    return Listing(title="Latest tasks", href=reverse("admin:a2a_server_task_changelist"), headers=headers, rows=rows)


def _task_row(task: Task, screen: TaskAdmin) -> tuple[str, str, str, str]:
    url = reverse("admin:a2a_server_task_change", args=[task.pk])
    link = format_html('<a href="{}">{}</a>', url, screen.request_text(task))
    label = {"type": STATE_LABELS.get(task.state), "text": task.get_state_display()}
    return link, render_to_string("unfold/helpers/label.html", label), task.caller.name, moment(task.status_at)

"""Sessions and their transcripts, to read."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from volcanic.admin import transcript
from volcanic.admin.base import OwnedAdmin, OwnRelatedFilter, display, moment
from volcanic.models import Session, Turn

TURNS_PER_PAGE = 20


@admin.register(Session)
class SessionAdmin(OwnedAdmin):
    """Conversations: with the owner, or with one caller in one context."""

    owner_lookup = "workspace__owner"
    list_display = ("shown_title", "shown_kind", "workspace", "active", "created")
    list_filter = ("kind", ("workspace", OwnRelatedFilter), "last_active_at")
    list_select_related = ("workspace",)
    search_fields = ("title", "scope")
    search_help_text = "Caller, context or title"
    ordering = ("-last_active_at", "-id")
    fields = ("shown_title", "kind", "workspace", "scope", "created_at", "last_active_at")
    readonly_fields = fields
    change_form_outer_after_template = "admin/volcanic/transcript.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Brings the workspace along."""
        return super().get_queryset(request).select_related("workspace")

    @display(description="Session", ordering="title")
    def shown_title(self, obj: Session) -> str:
        """The title, or the scope of a session without one."""
        return str(obj)

    @display(description="Kind", ordering="kind", label={"owner": "primary", "inbound": "info"})
    def shown_kind(self, obj: Session) -> tuple[str, str]:
        """Whose conversation it is."""
        return obj.kind, obj.get_kind_display()

    @display(description="Last active", ordering="last_active_at")
    def active(self, obj: Session) -> str:
        """When something was last said."""
        return moment(obj.last_active_at)

    @display(description="Created", ordering="created_at")
    def created(self, obj: Session) -> str:
        """When it began."""
        return moment(obj.created_at)

    def panels(self, request: HttpRequest, obj: Session) -> dict[str, Any]:
        """Returns the newest turns, oldest of them first; `?before=ID` goes back from there."""
        rows = Turn.objects.filter(session=obj).order_by("-id")
        before = request.GET.get("before", "")
        if before.isascii() and before.isdigit() and len(before) < 19:
            rows = rows.filter(id__lt=int(before))
        page = list(rows[: TURNS_PER_PAGE + 1])
        older = page[TURNS_PER_PAGE - 1].pk if len(page) > TURNS_PER_PAGE else None
        turns = [_shown(turn) for turn in reversed(page[:TURNS_PER_PAGE])]
        return {"turns": turns, "older": older, "before": before}


def _shown(turn: Turn) -> dict[str, Any]:
    kind, _, origin_id = turn.origin.partition(":")
    prompt, lines = transcript.clip(turn.prompt), transcript.lines(turn.messages)
    if lines and lines[0].speaker == "Prompt" and lines[0].text == prompt:
        del lines[0]
    return {
        "turn": turn,
        "prompt": prompt,
        "lines": lines,
        "pending": transcript.pretty(turn.pending) if turn.pending is not None else "",
        "task_id": origin_id if kind == "task" else "",
        "seconds": (turn.finished_at - turn.started_at).total_seconds(),
    }

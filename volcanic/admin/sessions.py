"""Read-only admin screen of sessions and their transcripts."""

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
        """Returns the rows with their workspace."""
        return super().get_queryset(request).select_related("workspace")

    @display(description="Session", ordering="title")
    def shown_title(self, obj: Session) -> str:
        """Title of the session; its scope if it has no title."""
        return str(obj)

    @display(description="Kind", ordering="kind", label={"owner": "primary", "inbound": "info"})
    def shown_kind(self, obj: Session) -> tuple[str, str]:
        """Kind of session, with its color: the owner's or a caller's."""
        return obj.kind, obj.get_kind_display()

    @display(description="Last active", ordering="last_active_at")
    def active(self, obj: Session) -> str:
        """Time of the last activity."""
        return moment(obj.last_active_at)

    @display(description="Created", ordering="created_at")
    def created(self, obj: Session) -> str:
        """Time when the session began."""
        return moment(obj.created_at)

    def panels(self, request: HttpRequest, obj: Session) -> dict[str, Any]:
        """Returns the newest TURNS_PER_PAGE turns, oldest first; with `?before=ID` the newest turns before that id."""
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

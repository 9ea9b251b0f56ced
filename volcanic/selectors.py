"""Reads of the assistant's tables."""

import re
from collections.abc import Sequence
from functools import reduce
from operator import or_

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.contrib.postgres.search import SearchQuery, SearchRank, SearchVector
from django.db.models import BooleanField, ExpressionWrapper, F, Q, QuerySet, Sum, TextField, Window
from django.db.models.functions import Cast, Length, RowNumber
from django.utils import timezone

from volcanic.models import Memory, Notification, Turn, WorkingNote, Workspace
from volcanic.runtime.base import PastTurn


def workspaces_of(user: AbstractBaseUser | AnonymousUser) -> QuerySet[Workspace]:
    """Returns the workspaces whose rows `user` may see: all for a superuser, else their own."""
    if getattr(user, "is_superuser", False):
        return Workspace.objects.all()
    return Workspace.objects.filter(owner_id=user.pk)


# What a model is given of a session's past: its newest turns, so many and together of so many characters. The rest
# stays in the transcript. A session that goes on for years would else come to a prompt that no model takes.
MAX_HISTORY_TURNS, MAX_HISTORY_CHARACTERS = 200, 400_000


def session_history(*, session_id: int, asker: str) -> tuple[Sequence[PastTurn], PastTurn | None]:
    """Returns a session's newest past turns, oldest first, and the one among them whose open question a new turn
    answers: the last question of `asker` that is open (None if there is none, or for the asker "").

    That one comes last, whatever ran in the session since it asked: an answer follows its question.
    """
    turns = Turn.objects.filter(session_id=session_id).order_by("-id")
    newest = turns.values("pk")[:MAX_HISTORY_TURNS]
    asking = turns.filter(asker=asker, pending__isnull=False) if asker else turns.none()
    question = asking.values_list("pk", flat=True).first()
    backwards = F("id").desc()
    fitting = Q(rank=1) | Q(rank__lte=MAX_HISTORY_TURNS, size__lte=MAX_HISTORY_CHARACTERS)
    rows = (
        Turn.objects.filter(Q(pk__in=newest) | Q(pk=question))
        .annotate(
            rank=Window(RowNumber(), order_by=backwards),
            size=Window(Sum(Length(Cast("messages", TextField()))), order_by=backwards),
            fits=ExpressionWrapper(fitting, output_field=BooleanField()),
        )
        .filter(Q(fits=True) | Q(pk=question))
        .order_by("id")
        .values_list("pk", "origin", "messages", "pending")
    )
    past = {row[0]: PastTurn(origin=row[1], messages=row[2], pending=row[3]) for row in rows}
    answered = past.pop(question, None) if question else None
    return [*past.values(), answered] if answered else list(past.values()), answered


_MAX_WORDS = 12


def memory_search(*, workspace_id: int, query: str, source: str | None, limit: int) -> list[Memory]:
    """Returns what was remembered that has words of `query` in it, the best first; with none, the newest.

    `source` None sees all of the workspace's; otherwise what is the owner's and what comes from that source.
    """
    rows = Memory.objects.filter(workspace_id=workspace_id)
    if source is not None:
        rows = rows.filter(source__in=["", source])
    words = re.findall(r"\w+", query)[:_MAX_WORDS]
    if words:
        # `simple`: no language is assumed. Any word will do, more words rank higher.
        vector = SearchVector("text", config="simple")
        any_word = reduce(or_, (SearchQuery(word, config="simple") for word in words))
        rows = rows.annotate(found=vector, rank=SearchRank(vector, any_word))
        rows = rows.filter(Q(found=any_word) | Q(text__icontains=query.strip())).order_by("-rank", "-id")
    else:
        rows = rows.order_by("-id")
    return list(rows[:limit])


def memories_of_source(*, workspace_id: int, source: str) -> int:
    """Returns how much one source has had remembered."""
    return Memory.objects.filter(workspace_id=workspace_id, source=source).count()


def notifications_waiting(*, workspace_id: int, caller: str) -> int:
    """Returns how many notes out of a caller's turns the owner has not read yet: what the assistant left by itself."""
    unread = Notification.objects.filter(workspace_id=workspace_id, caller=caller, read_at=None)
    return unread.filter(kind=Notification.Kind.NOTE).count()


def notes_of(*, workspace_id: int, namespace: str) -> dict[str, str]:
    """Returns the working notes of a namespace by their keys, without those whose time is over."""
    rows = WorkingNote.objects.filter(workspace_id=workspace_id, namespace=namespace, expires_at__gt=timezone.now())
    return dict(rows.order_by("key").values_list("key", "text"))

"""Read queries on the assistant's tables."""

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


# Limits of a session's past turns in a model's prompt: the number of turns, and the characters of all of them together.
# Older turns stay in the transcript only. Without limits, a session of many years would exceed every model's context.
MAX_HISTORY_TURNS, MAX_HISTORY_CHARACTERS = 200, 400_000


def session_history(*, session_id: int, asker: str) -> tuple[Sequence[PastTurn], PastTurn | None]:
    """Returns a session's newest past turns, oldest first, and the past turn whose question a new turn answers.

    The question is the last open question of `asker`. The second value is None if there is no such question or `asker`
    is "". The turn with the question comes last in the list, even if other turns ran after that turn, since an answer
    must follow its question.
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
    """Returns at most `limit` memories with words of `query`, the best match first; the newest if `query` has no words.

    With `source` None, all memories of the workspace are searched. Otherwise the search covers the owner's memories and
    the memories from `source`.
    """
    rows = Memory.objects.filter(workspace_id=workspace_id)
    if source is not None:
        rows = rows.filter(source__in=["", source])
    words = re.findall(r"\w+", query)[:_MAX_WORDS]
    if words:
        # The configuration `simple` assumes no language. One matching word is enough; more words rank higher.
        vector = SearchVector("text", config="simple")
        any_word = reduce(or_, (SearchQuery(word, config="simple") for word in words))
        rows = rows.annotate(found=vector, rank=SearchRank(vector, any_word))
        rows = rows.filter(Q(found=any_word) | Q(text__icontains=query.strip())).order_by("-rank", "-id")
    else:
        rows = rows.order_by("-id")
    return list(rows[:limit])


def memories_of_source(*, workspace_id: int, source: str) -> int:
    """Returns the number of memories that come from `source`."""
    return Memory.objects.filter(workspace_id=workspace_id, source=source).count()


def notifications_waiting(*, workspace_id: int, caller: str) -> int:
    """Returns the number of unread notes for the owner that the assistant left in the turns of `caller`."""
    unread = Notification.objects.filter(workspace_id=workspace_id, caller=caller, read_at=None)
    return unread.filter(kind=Notification.Kind.NOTE).count()


def notes_of(*, workspace_id: int, namespace: str) -> dict[str, str]:
    """Returns the texts of a namespace's working notes by their keys, without expired notes."""
    rows = WorkingNote.objects.filter(workspace_id=workspace_id, namespace=namespace, expires_at__gt=timezone.now())
    return dict(rows.order_by("key").values_list("key", "text"))

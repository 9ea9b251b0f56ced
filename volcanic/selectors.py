"""Reads of the assistant's tables."""

import re
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.contrib.postgres.search import SearchQuery, SearchRank, SearchVector
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast, Length
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


def session_history(*, session_id: int, origin: str) -> tuple[Sequence[PastTurn], PastTurn | None]:
    """Returns a session's newest past turns, oldest first, and the one among them whose open question a new turn of
    `origin` answers (None if there is none).

    That one comes last, whatever ran in the session since it asked: an answer follows its question.
    """
    turns = Turn.objects.filter(session_id=session_id).order_by("-id")
    sized = turns.annotate(size=Length(Cast("messages", TextField())))
    newest = list(sized.values_list("origin", "messages", "pending", "size")[: MAX_HISTORY_TURNS + 1])
    own = next((row[:3] for row in newest if row[0] == origin), None)
    if own is None and len(newest) > MAX_HISTORY_TURNS:
        own = turns.filter(origin=origin).values_list("origin", "messages", "pending").first()
    past: list[PastTurn] = []
    characters = 0
    for *facts, size in newest[:MAX_HISTORY_TURNS]:
        characters += size
        if past and characters > MAX_HISTORY_CHARACTERS:
            break
        past.append(_past_turn(facts))
    past.reverse()
    if own is None or own[2] is None:
        return past, None
    answered = _past_turn(own)
    return [*(turn for turn in past if turn != answered), answered], answered


def _past_turn(facts: Sequence[Any]) -> PastTurn:
    origin, messages, pending = facts
    return PastTurn(origin=origin, messages=messages, pending=pending)


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

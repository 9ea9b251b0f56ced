"""Reads of the assistant's tables."""

from collections.abc import Sequence

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import QuerySet

from volcanic.models import Turn, Workspace
from volcanic.runtime.base import PastTurn


def workspaces_of(user: AbstractBaseUser | AnonymousUser) -> QuerySet[Workspace]:
    """Returns the workspaces whose rows `user` may see: all for a superuser, else their own."""
    if getattr(user, "is_superuser", False):
        return Workspace.objects.all()
    return Workspace.objects.filter(owner_id=user.pk)


def session_history(*, session_id: int, origin: str) -> tuple[Sequence[PastTurn], PastTurn | None]:
    """Returns a session's past turns, oldest first, and the one among them whose open question a new turn of `origin`
    answers (None if there is none).

    That one comes last, whatever ran in the session since it asked: an answer follows its question.
    """
    rows = Turn.objects.filter(session_id=session_id).order_by("id").values_list("origin", "messages", "pending")
    past = [PastTurn(origin=row[0], messages=row[1], pending=row[2]) for row in rows]
    last_own = next((turn for turn in reversed(past) if turn.origin == origin), None)
    if last_own is None or last_own.pending is None:
        return past, None
    past.remove(last_own)
    past.append(last_own)
    return past, last_own

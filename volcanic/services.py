"""The verbs of the assistant's own tables."""

from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from volcanic.models import Turn, Workspace
from volcanic.runtime.base import Outcome


@transaction.atomic
def workspace_create(*, slug: str, owner: User) -> Workspace:
    """Makes a workspace and its folder. Raises ValidationError for a bad or taken slug."""
    workspace = Workspace(slug=slug, owner=owner)
    workspace.full_clean()
    workspace.save()
    workspace.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    (workspace.path / "inbox").mkdir(mode=0o700, exist_ok=True)
    return workspace


def turn_record(*, session_id: int, origin: str, prompt: str, started_at: datetime, outcome: Outcome) -> Turn:
    """Writes a finished turn into the transcript. The caller's transaction decides whether it counts."""
    return Turn.objects.create(
        session_id=session_id,
        origin=origin,
        prompt=prompt,
        messages=outcome.messages,
        pending=outcome.pending,
        state=outcome.state.value,
        started_at=started_at,
    )

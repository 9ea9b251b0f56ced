"""The verbs of the assistant's own tables."""

from django.contrib.auth.models import User
from django.db import transaction

from volcanic.models import Workspace


@transaction.atomic
def workspace_create(*, slug: str, owner: User) -> Workspace:
    """Makes a workspace and its folder. Raises ValidationError for a bad or taken slug."""
    workspace = Workspace(slug=slug, owner=owner)
    workspace.full_clean()
    workspace.save()
    workspace.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    (workspace.path / "inbox").mkdir(mode=0o700, exist_ok=True)
    return workspace

"""Setting a workspace's channels."""

from volcanic.models import Workspace
from volcanic.notifications.apprise_urls import channels_check


def workspace_set_channels(*, workspace: Workspace, text: str) -> int:
    """Gives a workspace's owner the channels in `text`, one address a line, in place of what was there; "" is none.
    Returns how many. Raises ValidationError for an address that can't be used; nothing is changed then."""
    urls = channels_check(text)
    workspace.notify_urls = "\n".join(urls) or None
    workspace.save(update_fields=["notify_urls", "updated_at"])
    return len(urls)

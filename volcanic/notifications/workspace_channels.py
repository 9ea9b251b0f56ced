"""Service that sets a workspace's channels."""

from volcanic.models import Workspace
from volcanic.notifications.apprise_urls import channels_check


def workspace_set_channels(*, workspace: Workspace, text: str) -> int:
    """Replaces a workspace's channels with the addresses in `text`, one a line; "" removes all channels.

    Returns the number of channels. Raises ValidationError for an address that can't be used, and changes nothing then.
    """
    urls = channels_check(text)
    workspace.notify_urls = "\n".join(urls) or None
    workspace.save(update_fields=["notify_urls", "updated_at"])
    return len(urls)

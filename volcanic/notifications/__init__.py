"""Notifications: telling the owner in their session and on their Apprise channels."""

"""Notifications of the owner, in the owner's session and on their channels."""

"""The owner's screens of the assistant's own tables, and what all admin screens share.

base.py: who sees which rows, no full counts. dashboard.py: the first page. The other modules register screens.
"""

from django.contrib import admin

from volcanic.admin import deliveries, notifications, sessions, users, workspaces

__all__ = ["deliveries", "notifications", "sessions", "users", "workspaces"]

admin.site.index_title = "Overview"

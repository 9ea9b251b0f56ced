"""Admin screens of the assistant's own tables, and the base classes of all admin screens.

base.py: access to rows, paging without full counts. dashboard.py: the first page. The other modules register screens.
"""

from django.contrib import admin

from volcanic.admin import deliveries, notifications, sessions, users, workspaces

__all__ = ["deliveries", "notifications", "sessions", "users", "workspaces"]

admin.site.index_title = "Overview"

"""The owner's screens of tasks and webhooks. Django's admin finds them by importing this package."""

from a2a_server.admin import tasks, webhooks

__all__ = ["tasks", "webhooks"]

"""The owner's admin screens for tasks and webhooks. Django's admin registers them by importing this package."""

from a2a_server.admin import tasks, webhooks

__all__ = ["tasks", "webhooks"]

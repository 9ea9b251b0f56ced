"""Webhooks: what callers register for a task, and what they are sent."""

"""Webhooks: the push notification configs that callers register for a task, and the deliveries to them."""

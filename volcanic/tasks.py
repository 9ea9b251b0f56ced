"""Celery's entry points of the assistant itself: each takes an id at most, and calls a service."""

import asyncio

from celery import shared_task
from django.conf import settings

from volcanic import deliveries
from volcanic.loop import get_loop
from volcanic.notices import notifications_prune, notifications_tell
from volcanic.services import notes_prune


@shared_task(name="volcanic.tasks.tell")
def tell() -> None:
    """Tells owners what waits for them, and sends lost messages and what is to be tried again."""
    notifications_tell()
    deliveries.deliveries_sweep()


@shared_task(name="volcanic.tasks.deliver")
def deliver(delivery_id: int) -> None:
    """Has this process's loop send a text to a channel. Holds no thread of the worker meanwhile."""
    asyncio.run_coroutine_threadsafe(deliveries.deliver(delivery_id), get_loop())


@shared_task(name="volcanic.tasks.prune")
def prune() -> None:
    """Deletes notifications older than RETENTION_DAYS, and working notes whose time is over."""
    notifications_prune(settings.RETENTION_DAYS)
    notes_prune()

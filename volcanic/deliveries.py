"""Sends texts to the owner's channels, each on its own: one that is down or hangs holds up no other.

A Celery message says no more than "look at this delivery". Whoever moves its next try into the future by one
conditional statement has it for so long; if the process dies, that time comes, a sweep finds it and it is sent again.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from volcanic.celery import publish
from volcanic.channels import channel_send_aside
from volcanic.db import run_db
from volcanic.models import NotificationDelivery

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 30.0
LEASE_SECONDS = 60
# After so many seconds each; the last one is a day after the first try.
RETRY_SECONDS = (10, 60, 300, 1800, 7200, *[3600] * 21)
_MAX_ERROR = 500


@dataclass(frozen=True)
class Claimed:
    """A delivery that is this process's for a while, with the number of this try."""

    pk: int
    attempt: int
    url: str
    title: str
    text: str


async def deliver(delivery_id: int) -> None:
    """Sends one delivery, if it is due and nobody else is at it."""
    try:
        claimed = await run_db(_claim, delivery_id)
        if claimed is None:
            return
        error = await _sent(claimed)
        await run_db(_note, claimed, error)
    except Exception:
        logger.exception("notification delivery %s broke off", delivery_id)


async def _sent(claimed: Claimed) -> str:
    """Sends a text. Returns what went wrong, "" if nothing did."""
    sending = channel_send_aside(claimed.url, claimed.title, claimed.text)
    try:
        return await asyncio.wait_for(asyncio.wrap_future(sending), TIMEOUT_SECONDS)
    except TimeoutError:
        return f"No answer within {TIMEOUT_SECONDS:g} seconds."
    except RuntimeError as error:  # the name of what was raised: its text may hold the address
        return f"Sending failed: {error}."


def _claim(delivery_id: int) -> Claimed | None:
    """Takes a delivery that is due for LEASE_SECONDS and counts the try. Two statements, of which the first decides."""
    now = timezone.now()
    mine = NotificationDelivery.objects.filter(
        pk=delivery_id, state=NotificationDelivery.State.PENDING, next_try_at__lte=now
    )
    if not mine.update(next_try_at=now + timedelta(seconds=LEASE_SECONDS), attempts=F("attempts") + 1):
        return None
    row = NotificationDelivery.objects.filter(pk=delivery_id).first()
    if row is None or row.url is None:
        return None
    return Claimed(row.pk, row.attempts, row.url, row.title, row.text)


def _note(claimed: Claimed, error: str) -> None:
    """Writes down how a try ended. A try whose time was over when it ended no longer counts: there was another one."""
    rows = NotificationDelivery.objects.filter(
        pk=claimed.pk, attempts=claimed.attempt, state=NotificationDelivery.State.PENDING
    )
    if not error:
        rows.update(state=NotificationDelivery.State.DELIVERED, delivered_at=timezone.now(), last_error="")
    elif claimed.attempt > len(RETRY_SECONDS):
        logger.warning("notification delivery %s is given up: %s", claimed.pk, error)
        rows.update(state=NotificationDelivery.State.FAILED, last_error=error[:_MAX_ERROR])
    else:
        wait = timedelta(seconds=RETRY_SECONDS[claimed.attempt - 1])
        logger.info("notification delivery %s failed, next try in %s: %s", claimed.pk, wait, error)
        rows.update(next_try_at=timezone.now() + wait, last_error=error[:_MAX_ERROR])


def delivery_enqueue(delivery_id: int) -> None:
    """Sends the Celery message that has a worker look at a delivery."""
    from volcanic.tasks import deliver as task  # tasks.py imports this module

    publish(task, delivery_id)


def deliveries_sweep(*, limit: int = 500) -> int:
    """Sends the messages of deliveries that are due and that nobody is at. Returns how many."""
    due = NotificationDelivery.objects.filter(
        state=NotificationDelivery.State.PENDING, next_try_at__lte=timezone.now()
    ).order_by("next_try_at")
    ids = list(due.values_list("pk", flat=True)[:limit])
    for delivery_id in ids:
        delivery_enqueue(delivery_id)
    return len(ids)


def delivery_retry(delivery: NotificationDelivery) -> bool:
    """Tries a delivery that did not arrive at once, from the first try on. Returns whether this call changed it."""
    rows = NotificationDelivery.objects.filter(pk=delivery.pk).exclude(state=NotificationDelivery.State.DELIVERED)
    if not rows.update(state=NotificationDelivery.State.PENDING, attempts=0, next_try_at=timezone.now()):
        return False
    transaction.on_commit(partial(delivery_enqueue, delivery.pk))
    return True

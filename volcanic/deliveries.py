"""Sends texts to the owner's channels, each on its own: one that is down or hangs holds up no other (see lines.py).

A Celery message says no more than "look at this delivery". Whoever moves its next try into the future by one
conditional statement has it for so long; if the process dies, that time comes, a sweep finds it and it is sent again.
"""

import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from volcanic.celery import publish
from volcanic.channel_process import channel_send_apart
from volcanic.db import run_db
from volcanic.lines import Line, Lines
from volcanic.models import NotificationDelivery
from volcanic.text import cut

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 30.0
LEASE_SECONDS = 60  # longer than a try can take
# Texts that this process has on their way at a time, each in a process of its own.
MAX_SENDING = 12
MAX_SENDING_OF_WORKSPACE = 4
# After so many seconds each; the last one is a day after the first try.
RETRY_SECONDS = (10, 60, 300, 1800, 7200, *[3600] * 21)
_MAX_ERROR = 500
_lines = Lines(in_all=MAX_SENDING, of_workspace=MAX_SENDING_OF_WORKSPACE)


@dataclass(frozen=True)
class Claimed:
    """A delivery that is this process's for a while, with the number of this try."""

    pk: int
    attempt: int
    url: str
    title: str
    text: str


async def deliver(delivery_id: int) -> None:
    """Sends one delivery, if it is due and nobody else is at it, and then what else is due on its channel.

    Until there is a place for it nothing is claimed, and no try counted. What is left behind a failure, and what comes
    in the moment between the last look and the end, is left to the sweep.
    """
    try:
        line = await run_db(_line, delivery_id)
        if line is None:
            return
        with _lines.opened(line) as mine:
            if mine:
                await _work_off(line, delivery_id)
    except Exception:
        logger.exception("notification delivery %s broke off", delivery_id)


async def _work_off(line: Line, first: int) -> None:
    """Sends the due deliveries of a line one by one, until one fails."""
    following: int | None = first
    while following is not None:
        async with _lines.place(line):
            if not await _try(line, following):
                return
        following = await run_db(_next, line)


async def _try(line: Line, delivery_id: int) -> bool:
    """Sends one delivery, unless another process did. Returns whether it is worth going on."""
    claimed = await run_db(_claim, delivery_id)
    if claimed is None:
        return True
    error = await channel_send_apart(claimed.url, claimed.title, claimed.text, seconds=TIMEOUT_SECONDS)
    _lines.mark(line, down=bool(error))
    await run_db(_note, claimed, error)
    return not error


def _due() -> QuerySet[NotificationDelivery]:
    return NotificationDelivery.objects.filter(
        state=NotificationDelivery.State.PENDING, next_try_at__lte=timezone.now()
    )


def _line(delivery_id: int) -> Line | None:
    """Returns the line that a due delivery stands in."""
    row = _due().filter(pk=delivery_id).values_list("workspace_id", "channel").first()
    return None if row is None else Line(*row)


def _next(line: Line) -> int | None:
    """Returns the delivery of a line that has been due for longest."""
    rows = _due().filter(workspace_id=line.workspace_id, channel=line.channel)
    return rows.order_by("next_try_at", "pk").values_list("pk", flat=True).first()


def _claim(delivery_id: int) -> Claimed | None:
    """Takes a delivery that is due for LEASE_SECONDS and counts the try. Two statements, of which the first decides."""
    until = timezone.now() + timedelta(seconds=LEASE_SECONDS)
    if not _due().filter(pk=delivery_id).update(next_try_at=until, attempts=F("attempts") + 1):
        return None
    row = NotificationDelivery.objects.filter(pk=delivery_id).first()
    return None if row is None else Claimed(row.pk, row.attempts, row.url or "", row.title, row.text)


def _note(claimed: Claimed, error: str) -> None:
    """Writes down how a try ended. A try whose time was over when it ended no longer counts: there was another one."""
    rows = NotificationDelivery.objects.filter(
        pk=claimed.pk, attempts=claimed.attempt, state=NotificationDelivery.State.PENDING
    )
    if not error:
        rows.update(state=NotificationDelivery.State.DELIVERED, delivered_at=timezone.now(), last_error="")
    elif claimed.attempt > len(RETRY_SECONDS):
        logger.warning("notification delivery %s is given up: %s", claimed.pk, error)
        rows.update(state=NotificationDelivery.State.FAILED, last_error=cut(error, _MAX_ERROR))
    else:
        wait = timedelta(seconds=RETRY_SECONDS[claimed.attempt - 1])
        logger.info("notification delivery %s failed, next try in %s: %s", claimed.pk, wait, error)
        rows.update(next_try_at=timezone.now() + wait, last_error=cut(error, _MAX_ERROR))


def delivery_enqueue(delivery_id: int) -> None:
    """Sends the Celery message that has a worker look at a delivery."""
    from volcanic.tasks import deliver as task  # tasks.py imports this module

    publish(task, delivery_id)


def deliveries_sweep() -> int:
    """Sends a message for each line that something is due in and nobody is at. Returns how many.

    One for a line: whoever takes it works off the others, and a long line keeps no short one waiting.
    """
    lines = _due().order_by("workspace_id", "channel", "next_try_at", "pk").distinct("workspace_id", "channel")
    ids = list(lines.values_list("pk", flat=True))
    for delivery_id in ids:
        delivery_enqueue(delivery_id)
    return len(ids)


def delivery_retry(delivery: NotificationDelivery) -> bool:
    """Tries a delivery that was given up at once, from the first try on. Returns whether this call changed it.

    One that is pending may be on its way: its number of tries is what tells that try from the next.
    """
    rows = NotificationDelivery.objects.filter(pk=delivery.pk, state=NotificationDelivery.State.FAILED)
    if not rows.update(state=NotificationDelivery.State.PENDING, attempts=0, next_try_at=timezone.now()):
        return False
    transaction.on_commit(partial(delivery_enqueue, delivery.pk))
    return True

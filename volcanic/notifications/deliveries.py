"""Delivering notifications to the owner's channels. A channel that is down or hangs holds up no other."""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from volcanic.aio.db import run_db
from volcanic.leased_work import MAX_ERROR, Job, LeasedWork, Result, retry_now
from volcanic.models import NotificationDelivery
from volcanic.notifications.sending import channel_send_apart
from volcanic.text import cut

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 30.0

# A workspace and one of its channels, as it is shown: two addresses at one service can be one channel.
Channel = tuple[int, str]


class NotificationDeliveries(LeasedWork[Channel]):
    """Deliveries of notifications. A queue is one channel of one workspace.

    A delivery that waits for its retry does not hold up later ones on its channel: they need no order.
    """

    task = "volcanic.tasks.deliver"
    model = NotificationDelivery
    head = """
        SELECT id FROM volcanic_notificationdelivery
        WHERE workspace_id = %(workspace)s AND channel = %(channel)s AND state = 'pending'
          AND (lease_expires_at IS NULL OR lease_expires_at < %(now)s)
        ORDER BY next_try_at, id LIMIT 1
    """
    lease_seconds = 60  # longer than a try can take
    # The last try is a day after the first.
    backoff: Sequence[float] = (10, 60, 300, 1800, 7200, *[3600] * 21)
    max_running = 12  # each in a process of its own

    def parameters(self, queue: Channel) -> dict[str, Any]:
        """Returns the workspace and its channel."""
        return {"workspace": queue[0], "channel": queue[1]}

    def due(self, *, limit: int = 500) -> list[Channel]:
        """Returns the channels that a delivery is due on."""
        now = timezone.now()
        free = Q(lease_expires_at=None) | Q(lease_expires_at__lt=now)
        rows = NotificationDelivery.objects.filter(free, state="pending", next_try_at__lte=now)
        return list(rows.order_by("workspace_id", "channel").values_list("workspace_id", "channel").distinct()[:limit])

    async def do(self, job: Job[Channel]) -> Result:
        """Sends the text, within TIMEOUT_SECONDS."""
        row = await run_db(NotificationDelivery.objects.filter(pk=job.pk).first)
        if row is None:
            return Result()
        return Result(await channel_send_apart(row.url or "", row.title, row.text, seconds=TIMEOUT_SECONDS))

    def give_up(self, job: Job[Channel], error: str) -> None:
        """Marks the delivery as given up, for the owner to see in the admin."""
        logger.warning("notification delivery %s is given up: %s", job.pk, cut(error, MAX_ERROR))
        NotificationDelivery.objects.filter(pk=job.pk).update(state=NotificationDelivery.State.FAILED)


notification_deliveries = NotificationDeliveries()


def delivery_enqueue(delivery: NotificationDelivery) -> None:
    """Has the channel of a delivery served, after commit."""
    queue = (delivery.workspace_id, delivery.channel)
    transaction.on_commit(partial(notification_deliveries.enqueue, queue))


def delivery_retry(delivery: NotificationDelivery) -> bool:
    """Tries a delivery that was given up at once, from its first try on. Returns whether this call changed it."""
    rows = NotificationDelivery.objects.filter(pk=delivery.pk, state=NotificationDelivery.State.FAILED)
    if not rows.update(state=NotificationDelivery.State.PENDING, **retry_now()):
        return False
    delivery_enqueue(delivery)
    return True

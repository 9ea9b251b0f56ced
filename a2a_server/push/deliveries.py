"""Deliveries to webhooks: each webhook gets its pending deliveries strictly in order, each at least once."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.utils import timezone

from a2a_server.models import PushConfig, PushDelivery
from a2a_server.push import queries
from a2a_server.push.configs import push_configs_purge
from a2a_server.push.snapshots import task_at
from volcanic import outbound
from volcanic.aio.db import run_db
from volcanic.leased_work import Job, LeasedWork, Result
from volcanic.origins import task_origin
from volcanic.redaction import redact
from volcanic.services import notification_create

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 15.0
_MAX_ANSWER_BYTES = 64 * 1024


class PushDeliveries(LeasedWork[int]):
    """The leased work of webhook deliveries. A queue holds the deliveries of one webhook; its key is the PushConfig's.

    `backoff` holds the seconds before each retry; after the last one the webhook is given up.
    """

    task = "a2a_server.tasks.deliver"
    model = PushDelivery
    head = queries.DELIVERY_HEAD
    lease_seconds = 30
    backoff: Sequence[float] = (1, 5, 30, 120, 600, 1800)
    jitter = 0.2
    max_running = 500

    def parameters(self, queue: int) -> dict[str, Any]:
        """Returns the parameters of DELIVERY_HEAD: the webhook's key."""
        return {"config": queue}

    def due(self, *, limit: int = 500) -> list[int]:
        """Returns the keys of webhooks with a due delivery that no process has leased, at most `limit`."""
        with connection.cursor() as cursor:
            cursor.execute(queries.CONFIGS_DUE, {"now": timezone.now(), "limit": limit})
            return [row[0] for row in cursor.fetchall()]

    async def do(self, job: Job[int]) -> Result:
        """Posts the delivery to the webhook. A webhook that answers 410 (Gone) is deleted."""
        request = await run_db(_request_of, job)
        if request is None:
            return Result()
        try:
            answer = await outbound.request(
                "POST",
                request.url,
                headers=request.headers,
                content=request.body,
                timeout=TIMEOUT_SECONDS,
                max_response_bytes=_MAX_ANSWER_BYTES,
            )
        except outbound.OutboundError as error:
            return Result(redact(str(error)), error.permanent, {"last_status": None})
        if answer.status == 410:
            logger.info("webhook %s is gone (410): deleted", job.queue)
            await run_db(push_configs_purge, PushConfig.objects.filter(pk=job.queue))
            return Result()
        refused = "" if 200 <= answer.status < 300 else f"answered {answer.status}"
        return Result(refused, values={"last_status": answer.status})

    def give_up(self, job: Job[int], error: str) -> None:
        """Marks the webhook as failing and notifies the owner. Its deliveries stay pending, in order."""
        if not PushConfig.objects.filter(pk=job.queue, state=PushConfig.State.ACTIVE).update(
            state=PushConfig.State.FAILING
        ):
            return
        config = PushConfig.objects.select_related("task__caller", "task__session").get(pk=job.queue)
        logger.warning("webhook %s of task %s is given up: %s", job.queue, config.task_id, error)
        notification_create(
            workspace_id=config.task.session.workspace_id,
            session_id=config.task.session_id,
            origin=task_origin(config.task_id),
            caller=config.task.caller.name,
            text=f"A webhook of {config.task.caller.name} was given up after {job.retries + 1} tries: {error}.",
        )


push_deliveries = PushDeliveries()


@dataclass(frozen=True)
class _Request:
    """An HTTP request to a webhook."""

    url: str
    headers: dict[str, str]
    body: bytes


def _request_of(job: Job[int]) -> _Request | None:
    """Returns the request for a delivery; None if the webhook or its task was deleted meanwhile. Two statements."""
    delivery = PushDelivery.objects.select_related("config__task__caller").filter(pk=job.pk).first()
    if delivery is None:
        return None
    config = delivery.config
    view = task_at(task=config.task, seq=delivery.seq)
    headers = {"user-agent": "volcanic"}
    if config.version == "0.3":
        from a2a_server.wire import task_to_03  # imports the SDK, which takes seconds

        body, headers["content-type"] = task_to_03(view), "application/json"
    else:
        body, headers["content-type"] = json.dumps({"task": view}, ensure_ascii=False), "application/a2a+json"
    if config.token:
        headers["x-a2a-notification-token"] = config.token
    if config.auth_scheme and config.auth_credentials:
        headers["authorization"] = f"{config.auth_scheme} {config.auth_credentials}"
    if secret := config.task.caller.webhook_secret:
        headers |= _signature(secret, f"msg_{job.pk}", body)
    return _Request(config.url, headers, body.encode())


def _signature(secret: str, message_id: str, body: str) -> dict[str, str]:
    """Returns the headers of a signed request (Standard Webhooks).

    The message id stays the same over retries, so that the receiver can drop repeats. The timestamp is the present
    try's.
    """
    from standardwebhooks import Webhook

    now = timezone.now()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(message_id, now, body),
    }

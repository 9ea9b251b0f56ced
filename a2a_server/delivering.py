"""Serves webhooks: for each, what it is owed, strictly in order, at least once.

A Celery message says no more than "look at this config"; the work is a coroutine on the process's loop, so that a
webhook that hangs holds no thread, and no other webhook up. Whoever holds a config's lease alone delivers for it. If
the process dies, the lease passes, a sweep finds what is due, and it is delivered again.
"""

import asyncio
import json
import logging
import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from a2a_server import push_queries
from a2a_server.models import PushConfig
from a2a_server.push_configs import push_configs_purge
from a2a_server.runs import WORKER
from a2a_server.services import push_enqueue
from a2a_server.snapshots import task_at
from volcanic import outbound
from volcanic.db import run_db
from volcanic.origins import task_origin
from volcanic.redaction import redact
from volcanic.services import notification_create

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 15.0
LEASE_SECONDS = 30
# After these many seconds each; then the webhook is given up.
RETRY_SECONDS = (1, 5, 30, 120, 600, 1800)
_JITTER = 0.2
# A retry that is due so soon is waited for; a later one is left to the sweep.
_WAIT_SECONDS = 6.0
_MOST_AT_A_TIME = 500
_MAX_ANSWER_BYTES = 64 * 1024

# Configs that this process is at work on, and those of them that somebody asked for once more.
_busy: set[int] = set()
_again: set[int] = set()
_slots = asyncio.Semaphore(_MOST_AT_A_TIME)


@dataclass(frozen=True)
class Due:
    """The next delivery of a config."""

    delivery_id: int
    seq: int
    attempts: int
    next_try_at: datetime
    task_id: uuid.UUID


async def deliver(config_id: int) -> None:
    """Delivers what a config is owed, until nothing is due soon. Does nothing where another process is at it."""
    if config_id in _busy:
        _again.add(config_id)
        return
    _busy.add(config_id)
    holder = f"{WORKER}:{uuid.uuid4().hex}"
    try:
        async with _slots:
            # What came in the meantime found the config held, or us busy, and left: so look again.
            while await run_db(_claim, config_id, holder):
                _again.discard(config_id)
                await _deliver_held(config_id, holder)
                due = await run_db(_release, config_id, holder)
                if not due and config_id not in _again:
                    break
    except Exception:
        logger.exception("deliveries for webhook %s broke off", config_id)
    finally:
        _busy.discard(config_id)
        _again.discard(config_id)


async def _deliver_held(config_id: int, holder: str) -> None:
    while (due := await run_db(_next, config_id, holder)) is not None:
        wait = (due.next_try_at - timezone.now()).total_seconds()
        if wait > _WAIT_SECONDS:
            return
        if wait > 0:
            await asyncio.sleep(wait)
            continue  # ask again whether it is still ours
        request = await run_db(_request_of, config_id, due)
        if request is None:
            return
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
            goes_on = await run_db(_failed, config_id, holder, due, None, redact(str(error)), error.permanent)
        else:
            goes_on = await run_db(_answered, config_id, holder, due, answer.status)
        if not goes_on:
            return


def _values(config_id: int, holder: str) -> dict[str, Any]:
    now = timezone.now()
    return {"config": config_id, "holder": holder, "now": now, "lease": now + timedelta(seconds=LEASE_SECONDS)}


def _execute(query: str, values: dict[str, Any]) -> Sequence[Any] | None:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        row: Sequence[Any] | None = cursor.fetchone() if cursor.description else None
        return row


def _claim(config_id: int, holder: str) -> bool:
    return _execute(push_queries.CONFIG_CLAIM, _values(config_id, holder)) is not None


def _next(config_id: int, holder: str) -> Due | None:
    row = _execute(push_queries.DELIVERY_NEXT, _values(config_id, holder))
    return Due(*row) if row else None


def _release(config_id: int, holder: str) -> bool:
    """Gives a config free. Returns whether something of it is due after all."""
    values = _values(config_id, holder)
    _execute(push_queries.CONFIG_RELEASE, values)
    return _execute(push_queries.CONFIG_DUE, values) is not None


def configs_due(*, limit: int = 500) -> list[int]:
    """Returns the configs that nobody serves though something is due."""
    with connection.cursor() as cursor:
        cursor.execute(push_queries.CONFIGS_DUE, {"now": timezone.now(), "limit": limit})
        return [row[0] for row in cursor.fetchall()]


def pushes_sweep() -> int:
    """Sends the messages of configs that nobody serves though something is due. Returns how many."""
    due = configs_due()
    for config_id in due:
        push_enqueue(config_id)
    return len(due)


@dataclass(frozen=True)
class Notification:
    """An HTTP request to a webhook."""

    url: str
    headers: dict[str, str]
    body: bytes


def _request_of(config_id: int, due: Due) -> Notification | None:
    """Returns what is to be sent, None if the config is gone, or its task and so the config. Two statements."""
    config = PushConfig.objects.select_related("task__caller").filter(pk=config_id).first()
    if config is None:
        return None
    view = task_at(task=config.task, seq=due.seq)
    headers = {"user-agent": "volcanic"}
    if config.version == "0.3":
        from a2a_server.wire import task_to_03

        body, headers["content-type"] = task_to_03(view), "application/json"
    else:
        body, headers["content-type"] = json.dumps({"task": view}, ensure_ascii=False), "application/a2a+json"
    if config.token:
        headers["x-a2a-notification-token"] = config.token
    if config.auth_scheme and config.auth_credentials:
        headers["authorization"] = f"{config.auth_scheme} {config.auth_credentials}"
    if secret := config.task.caller.webhook_secret:
        headers |= _signature(secret, f"msg_{due.delivery_id}", body)
    return Notification(config.url, headers, body.encode())


def _signature(secret: str, message_id: str, body: str) -> dict[str, str]:
    """Returns the Standard Webhooks headers. The id stays the same over retries; the time is this try's."""
    from standardwebhooks import Webhook

    now = timezone.now()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(message_id, now, body),
    }


def _answered(config_id: int, holder: str, due: Due, status: int) -> bool:
    """Notes an answer. Returns whether to go on with this config."""
    if status == 410:
        logger.info("webhook %s is gone (410): deleted", config_id)
        push_configs_purge(PushConfig.objects.filter(pk=config_id, holder=holder))
        return False
    if 200 <= status < 300:
        values = {"delivery": due.delivery_id, "status": status, "now": timezone.now()}
        _execute(push_queries.DELIVERY_DONE, values)
        return True
    return _failed(config_id, holder, due, status, f"answered {status}", permanent=False)


def _failed(config_id: int, holder: str, due: Due, status: int | None, error: str, permanent: bool) -> bool:
    """Notes a failed try and when the next is; after the last one gives the config up. Returns whether to go on."""
    over = permanent or due.attempts >= len(RETRY_SECONDS)
    seconds = 0.0 if over else RETRY_SECONDS[due.attempts] * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311
    values = {
        **_values(config_id, holder),
        "delivery": due.delivery_id,
        "status": status,
        "error": error[:500],
        "next": timezone.now() + timedelta(seconds=seconds),
    }
    with transaction.atomic():
        _execute(push_queries.DELIVERY_FAILED, values)
        if over and _execute(push_queries.CONFIG_GIVE_UP, values) is not None:
            _tell_owner(config_id, due, error)
    return not over


def _tell_owner(config_id: int, due: Due, error: str) -> None:
    config = PushConfig.objects.select_related("task__caller", "task__session").get(pk=config_id)
    logger.warning("webhook %s of task %s is given up: %s", config_id, due.task_id, error)
    notification_create(
        workspace_id=config.task.session.workspace_id,
        session_id=config.task.session_id,
        origin=task_origin(due.task_id),
        caller=config.task.caller.name,
        text=f"A webhook of {config.task.caller.name} was given up after {due.attempts + 1} tries: {error}.",
    )

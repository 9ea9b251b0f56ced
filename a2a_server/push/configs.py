"""Webhook configs: registering, reading, listing, stopping and deleting them. `deliveries.py` sends to them."""

import base64
import binascii
import uuid

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from a2a_server.errors import InvalidParams, TaskNotFound
from a2a_server.models import PushConfig, PushDelivery, Task
from a2a_server.submission import WantedPush
from volcanic.celery import publish
from volcanic.leased_work import retry_now

PAGE_SIZE, MAX_PAGE_SIZE = 50, 100


@transaction.atomic
def push_config_set(*, task_id: uuid.UUID, caller_id: int, wanted: WantedPush) -> PushConfig:
    """Registers a webhook for a caller's task, or replaces the webhook with the same id. Returns the webhook.

    Writes a delivery of the task in its present state at once, so that the webhook misses no event from before the
    registration. The lock on the task's row puts the registration in one order with the task's events. Raises
    TaskNotFound, or InvalidParams over MAX_PUSH_CONFIGS webhooks.
    """
    task = Task.objects.select_for_update().only("id", "seq").filter(pk=task_id, caller_id=caller_id).first()
    if task is None:
        raise TaskNotFound(str(task_id))
    config_id = wanted.config_id or str(uuid.uuid4())
    others = PushConfig.objects.filter(task=task).exclude(config_id=config_id).count()
    if others >= settings.MAX_PUSH_CONFIGS:
        raise InvalidParams(f"A task has at most {settings.MAX_PUSH_CONFIGS} push notification configs.")
    config, _ = PushConfig.objects.update_or_create(
        task=task,
        config_id=config_id,
        defaults={
            "url": wanted.url,
            "token": wanted.token,
            "auth_scheme": wanted.auth_scheme,
            "auth_credentials": wanted.auth_credentials,
            "version": wanted.version,
            "state": PushConfig.State.ACTIVE,
        },
    )
    PushDelivery.objects.get_or_create(config=config, seq=task.seq)
    transaction.on_commit(lambda: _enqueue(config.pk))
    return config


def _enqueue(config_pk: int) -> None:
    publish("a2a_server.tasks.deliver", config_pk)


def _configs_of(task_id: uuid.UUID, caller_id: int) -> QuerySet[PushConfig]:
    if not Task.objects.filter(pk=task_id, caller_id=caller_id).exists():
        raise TaskNotFound(str(task_id))
    return PushConfig.objects.filter(task_id=task_id)


def push_config_get(*, task_id: uuid.UUID, caller_id: int, config_id: str) -> PushConfig:
    """Returns a webhook of a caller's task. Raises TaskNotFound for an unknown task or config (specification 3.1.8)."""
    config = _configs_of(task_id, caller_id).filter(config_id=config_id).first()
    if config is None:
        raise TaskNotFound(config_id)
    return config


def push_configs_list(
    *, task_id: uuid.UUID, caller_id: int, page_size: int = 0, page_token: str = ""
) -> tuple[list[PushConfig], str]:
    """Returns a page of the webhooks of a caller's task, the oldest first, and the token of the next page.

    The token is "" on the last page. A page size of 0 means PAGE_SIZE (specification 3.1.9). Raises TaskNotFound, or
    InvalidParams for a bad size or token.
    """
    if not 0 <= page_size <= MAX_PAGE_SIZE:
        raise InvalidParams(f"pageSize must be from 0 to {MAX_PAGE_SIZE}.")
    size = page_size or PAGE_SIZE
    configs = _configs_of(task_id, caller_id).order_by("pk")
    if page_token:
        configs = configs.filter(pk__gt=_token_parse(page_token))
    found = list(configs[: size + 1])
    more = len(found) > size
    return found[:size], _token_make(found[size - 1].pk) if more else ""


def _token_make(key: int) -> str:
    return base64.urlsafe_b64encode(f"after {key}".encode()).decode().rstrip("=")


def _token_parse(token: str) -> int:
    try:
        text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode("ascii")
        return int(text.removeprefix("after "))
    except (ValueError, binascii.Error):
        raise InvalidParams("pageToken is none that this server gave out.") from None


def push_config_delete(*, task_id: uuid.UUID, caller_id: int, config_id: str) -> None:
    """Deletes a webhook with its secrets and its pending deliveries. Idempotent. Raises TaskNotFound."""
    push_configs_purge(_configs_of(task_id, caller_id).filter(config_id=config_id))


@transaction.atomic
def push_configs_purge(configs: QuerySet[PushConfig]) -> None:
    """Deletes webhooks with their deliveries. The lock keeps an event of the same moment from adding a delivery."""
    locked = list(configs.select_for_update().values_list("pk", flat=True))
    PushConfig.objects.filter(pk__in=locked).delete()


def push_config_stop(*, config: PushConfig) -> bool:
    """Stops the deliveries of a webhook at once. Returns whether this call stopped them."""
    others = PushConfig.objects.filter(pk=config.pk).exclude(state=PushConfig.State.STOPPED)
    return bool(others.update(state=PushConfig.State.STOPPED))


@transaction.atomic
def push_config_deliver_now(*, config: PushConfig) -> bool:
    """Has the pending deliveries of a webhook sent at once, also of a webhook that is failing or stopped.

    Returns whether the webhook has pending deliveries.
    """
    owed = PushDelivery.objects.filter(config=config, state=PushDelivery.State.PENDING)
    changed = owed.update(**retry_now())
    PushConfig.objects.filter(pk=config.pk).update(state=PushConfig.State.ACTIVE)
    transaction.on_commit(lambda: _enqueue(config.pk))
    return bool(changed)

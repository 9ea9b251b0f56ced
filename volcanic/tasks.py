"""Celery's entry points of the assistant itself: each takes an id at most, and calls a service."""

from celery import shared_task
from celery.signals import worker_init, worker_shutting_down
from django.conf import settings

from volcanic.events import events_prune
from volcanic.leased_work import note_worker
from volcanic.notifications.deliveries import notification_deliveries
from volcanic.notifications.telling import notifications_prune, notifications_tell
from volcanic.services import notes_prune
from volcanic.turns.leases import stop_after_grace
from volcanic.turns.owner import prompt_run
from volcanic.turns.prompts import prompts_sweep


@worker_init.connect
def begin(**_kwargs: object) -> None:
    """Notes that this process is a worker."""
    note_worker()


@worker_shutting_down.connect
def end(**_kwargs: object) -> None:
    """Gives this worker's runs a grace to end by themselves, then ends them as "server restarted"."""
    stop_after_grace()


@shared_task(name="volcanic.tasks.run_prompt")
def run_prompt(session_id: int) -> None:
    """Runs the next prompt of an owner's session, if it is still there to be run."""
    prompt_run(session_id=session_id)


@shared_task(name="volcanic.tasks.sweep_prompts")
def sweep_prompts() -> None:
    """Fails prompts whose worker is gone, and sends lost messages again."""
    prompts_sweep()


@shared_task(name="volcanic.tasks.tell")
def tell() -> None:
    """Tells owners what waits for them, and sends lost messages and what is to be tried again."""
    notifications_tell()
    notification_deliveries.sweep()


@shared_task(name="volcanic.tasks.deliver")
def deliver(workspace_id: int, channel: str) -> None:
    """Has this process's loop send what waits for a channel. Holds no thread of the worker meanwhile."""
    notification_deliveries.serve_here((workspace_id, channel))


@shared_task(name="volcanic.tasks.prune")
def prune() -> None:
    """Deletes old notifications and events, and working notes whose time is over."""
    notifications_prune(settings.RETENTION_DAYS)
    notes_prune()
    events_prune()

"""Celery's entry points: each takes an id at most, and calls a service."""

import asyncio
import threading
import uuid
from typing import Any

from celery import shared_task
from celery.signals import worker_init, worker_shutting_down
from django.conf import settings

from a2a_server import delivering
from a2a_server.deciding import approved_resume, orphaned_reviews_void
from a2a_server.delivering import pushes_sweep
from a2a_server.pruning import tasks_prune
from a2a_server.running import task_run
from a2a_server.runs import StopReason, keeper
from a2a_server.services import tasks_sweep
from volcanic.loop import get_loop


@shared_task(name="a2a_server.tasks.run_turn")
def run_turn(task_id: str) -> None:
    """Runs a submitted task, if it is still there to be run."""
    task_run(task_id=uuid.UUID(task_id))


@shared_task(name="a2a_server.tasks.deliver")
def deliver(config_id: int) -> None:
    """Has this process's loop deliver what a webhook is owed."""
    deliver_here(config_id)


# Whether this process is a worker: one can deliver by itself, without a message and a thread.
in_worker = False


@worker_init.connect
def note_worker(**_kwargs: Any) -> None:
    """Notes that this process is a worker."""
    global in_worker
    in_worker = True


def deliver_here(config_id: int) -> None:
    """Has this process's loop deliver what a webhook is owed. Holds no thread meanwhile."""
    asyncio.run_coroutine_threadsafe(delivering.deliver(config_id), get_loop())


@shared_task(name="a2a_server.tasks.sweep")
def sweep() -> None:
    """Fails runs whose worker is gone, and sends lost messages again."""
    tasks_sweep()
    approved_resume()
    orphaned_reviews_void()
    pushes_sweep()


@shared_task(name="a2a_server.tasks.prune")
def prune() -> None:
    """Deletes what is older than RETENTION_DAYS."""
    tasks_prune()


@worker_shutting_down.connect
def stop_runs(**_kwargs: Any) -> None:
    """Gives this worker's runs a grace to end by themselves, then ends them as "server restarted"."""
    timer = threading.Timer(settings.SHUTDOWN_GRACE_SECONDS, keeper.stop_all, [StopReason.SHUTDOWN])
    timer.daemon = True
    timer.start()

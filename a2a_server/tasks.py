"""Celery's entry points: each takes an id at most, and calls a service."""

import uuid

from celery import shared_task

from a2a_server.running import task_run
from a2a_server.services import tasks_sweep


@shared_task(name="a2a_server.tasks.run_turn")  # type: ignore[untyped-decorator]
def run_turn(task_id: str) -> None:
    """Runs a submitted task, if it is still there to be run."""
    task_run(task_id=uuid.UUID(task_id))


@shared_task(name="a2a_server.tasks.sweep")  # type: ignore[untyped-decorator]
def sweep() -> None:
    """Fails runs whose worker is gone, and sends lost messages again."""
    tasks_sweep()

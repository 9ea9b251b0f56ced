"""Celery's entry points: each takes an id at most, and calls a service."""

import uuid

from celery import shared_task

from a2a_server.pruning import tasks_prune
from a2a_server.push.deliveries import push_deliveries
from a2a_server.quotas import usage_count
from a2a_server.receivers import approved_resume, orphaned_reviews_void
from a2a_server.runs.dispatch import task_run
from a2a_server.services import tasks_sweep


@shared_task(name="a2a_server.tasks.run_turn")
def run_turn(task_id: str) -> None:
    """Runs a submitted task, if it is still there to be run."""
    task_run(task_id=uuid.UUID(task_id))


@shared_task(name="a2a_server.tasks.deliver")
def deliver(config_id: int) -> None:
    """Has this process's loop deliver what a webhook is owed. Holds no thread of the worker meanwhile."""
    push_deliveries.serve_here(config_id)


@shared_task(name="a2a_server.tasks.sweep")
def sweep() -> None:
    """Fails runs whose worker is gone, and sends lost messages again."""
    tasks_sweep()
    approved_resume()
    orphaned_reviews_void()
    push_deliveries.sweep()


@shared_task(name="a2a_server.tasks.prune")
def prune() -> None:
    """Deletes what is older than RETENTION_DAYS."""
    tasks_prune()
    usage_count()


@shared_task(name="a2a_server.tasks.count_usage")
def count_usage() -> None:
    """Counts what each caller has stored."""
    usage_count()

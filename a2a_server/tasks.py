"""Celery tasks: the entry points of the background workers. Each takes one id at most, and calls a service."""

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
    """Runs a submitted A2A task. Does nothing if the task can't be claimed any more."""
    task_run(task_id=uuid.UUID(task_id))


@shared_task(name="a2a_server.tasks.deliver")
def deliver(config_id: int) -> None:
    """Has this process's event loop send a webhook's pending deliveries. Holds no thread of the worker meanwhile."""
    push_deliveries.serve_here(config_id)


@shared_task(name="a2a_server.tasks.sweep")
def sweep() -> None:
    """Repairs lost work: expired runs, lost Celery messages, busy contexts, orphaned reviews, due deliveries."""
    tasks_sweep()
    approved_resume()
    orphaned_reviews_void()
    push_deliveries.sweep()


@shared_task(name="a2a_server.tasks.prune")
def prune() -> None:
    """Deletes tasks that ended more than RETENTION_DAYS ago, and recounts what callers have stored."""
    tasks_prune()
    usage_count()


@shared_task(name="a2a_server.tasks.count_usage")
def count_usage() -> None:
    """Recounts the stored tasks and the bytes of files of each caller."""
    usage_count()

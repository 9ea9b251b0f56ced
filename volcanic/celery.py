"""The Celery application. Tasks are found in each package's tasks.py and carry ids only."""

import logging
import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcanic.settings")

from celery import Celery, Task
from kombu.exceptions import OperationalError

from volcanic.worker import WakeHub

logger = logging.getLogger(__name__)

app = Celery("volcanic")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["consumer"].add(WakeHub)


def publish(task: "Task[Any, Any]", *args: Any) -> bool:
    """Sends a Celery message, and returns whether the broker took it.

    A broker that is away is no error: the row that the message would point at is there, and a sweep finds it.
    """
    try:
        task.apply_async(args=args, retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("message for %s not sent, the sweep will make up for it: %s", task.name, error)
        return False
    return True

"""The Celery application. Tasks are found in each package's tasks.py and carry ids only."""

import logging
import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcanic.settings")

from celery import Celery
from kombu.exceptions import OperationalError

from volcanic.worker import WakeHub

logger = logging.getLogger(__name__)

app = Celery("volcanic")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["consumer"].add(WakeHub)


def publish(task: str, *args: Any) -> bool:
    """Sends a Celery message for the task with the name `task`. Returns whether the broker took the message.

    The task is given by name, so that services need not import the entry points, which import the services. An
    unreachable broker is no error: the row that the message refers to is stored, and a sweep finds that row.
    """
    try:
        app.send_task(task, args=args, retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("message for %s not sent, the sweep will make up for it: %s", task, error)
        return False
    return True

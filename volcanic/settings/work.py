"""How work runs: Celery, the runner of agent turns, leases and sweeps."""

from typing import Any

from celery.schedules import crontab
from environs import validate

from volcanic.settings.env import at_least, env
from volcanic.settings.storage import REDIS_PREFIX, REDIS_URL

# redis-py and Celery name a unix socket differently.
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1).replace("?db=", "?virtual_host=", 1)
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
    "global_keyprefix": f"{REDIS_PREFIX}.",
    "socket_connect_timeout": 2,
    "socket_timeout": 10,
    # A message is only "look at this row": publishing is tried once, and the sweep makes up for a lost one.
    "max_retries": 0,
    # No copy of each message in Redis until it is acknowledged, which costs two round trips: what a dead worker took
    # along, the sweeps find.
    "ack_emulation": False,
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {
    "a2a_server.tasks.run_turn": {"queue": "turns"},
    "volcanic.tasks.run_prompt": {"queue": "turns"},
    # They ask a model, as turns do.
    "trust.tasks.learn": {"queue": "turns"},
    "trust.tasks.learn_all": {"queue": "turns"},
    "trust.tasks.preview": {"queue": "turns"},
    "a2a_server.tasks.deliver": {"queue": "push"},
    "volcanic.tasks.deliver": {"queue": "push"},
}
CELERY_BEAT_SCHEDULE: dict[str, Any] = {
    # A sweep that comes late is worthless, the next one does its work: `expires`.
    "sweep-tasks": {"task": "a2a_server.tasks.sweep", "schedule": 2.0, "options": {"expires": 10}},
    "sweep-prompts": {"task": "volcanic.tasks.sweep_prompts", "schedule": 2.0, "options": {"expires": 10}},
    # The quotas of what is stored.
    "count-usage": {"task": "a2a_server.tasks.count_usage", "schedule": 60.0, "options": {"expires": 60}},
    # Makes up for lost messages: each decision has its caller learned about at once.
    "learn": {"task": "trust.tasks.learn_all", "schedule": 600.0, "options": {"expires": 600}},
    "sweep-reviews": {"task": "trust.tasks.sweep", "schedule": 10.0, "options": {"expires": 20}},
    # At night, UTC. One that no worker takes within the day is made up for by the next.
    "prune": {
        "task": "a2a_server.tasks.prune",
        "schedule": crontab(hour="3", minute="17"),
        "options": {"expires": 80000},
    },
    "tell-owners": {"task": "volcanic.tasks.tell", "schedule": 5.0, "options": {"expires": 10}},
    "prune-notices": {
        "task": "volcanic.tasks.prune",
        "schedule": crontab(hour="3", minute="37"),
        "options": {"expires": 80000},
    },
}

# A running turn's worker renews its lease three times in this many seconds; a lease that has passed is a dead worker.
LEASE_SECONDS: int = env.int("LEASE_SECONDS", 30, validate=at_least(3))
TURN_TIMEOUT_SECONDS: int = env.int("TURN_TIMEOUT_SECONDS", 3600, validate=at_least(1))
# How long a stopping worker lets its turns finish before it ends them as "server restarted".
SHUTDOWN_GRACE_SECONDS: int = env.int("SHUTDOWN_GRACE_SECONDS", 20, validate=at_least(0))

RUNNER: str = env.str("RUNNER", "volcanic.runtime.assistant.AssistantRunner")
MODEL: str = env.str("MODEL", "faux")
MODEL_MAX_TOKENS: int = env.int("MODEL_MAX_TOKENS", 8192, validate=at_least(1))

# An owner who did nothing for so long is told what waits for them.
IDLE_SECONDS: int = env.int("IDLE_SECONDS", 120, validate=at_least(0))
# How many days an owner's page can be away and still resume from the log of events.
EVENT_DAYS: int = env.int("EVENT_DAYS", 3, validate=at_least(1))
# How long a working note is kept.
WORKING_MEMORY_SECONDS: int = env.int("WORKING_MEMORY_SECONDS", 86400, validate=at_least(1))

# The tool `bash`. `unsafe`: the owner's own turns run it as the worker's user, with all that this user may do.
OWNER_BASH: str = env.str("OWNER_BASH", "sandbox", validate=validate.OneOf(["sandbox", "unsafe"]))
BASH_TIMEOUT_SECONDS: int = env.int("BASH_TIMEOUT_SECONDS", 60, validate=at_least(1))
# Callers' turns write no more when the workspace takes so much on the disk.
WORKSPACE_MAX_BYTES: int = env.int("WORKSPACE_MAX_BYTES", 1024 * 1024 * 1024, validate=at_least(1024))

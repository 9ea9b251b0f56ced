"""Settings of work: Celery, the runner of agent turns, leases, sweeps, tools."""

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
    # A message only refers to a row. Publishing is tried once, since the sweep finds rows whose message was lost.
    "max_retries": 0,
    # Keeps no copy of unacknowledged messages in Redis, which would cost two round trips a message. The sweeps find the
    # work of a dead worker.
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
    # These tasks ask a model, as turns do.
    "trust.tasks.learn": {"queue": "turns"},
    "trust.tasks.learn_all": {"queue": "turns"},
    "trust.tasks.preview": {"queue": "turns"},
    "a2a_server.tasks.deliver": {"queue": "push"},
    "volcanic.tasks.deliver": {"queue": "push"},
}
CELERY_BEAT_SCHEDULE: dict[str, Any] = {
    # `expires` drops a late sweep, since the next sweep does the same work.
    "sweep-tasks": {"task": "a2a_server.tasks.sweep", "schedule": 2.0, "options": {"expires": 10}},
    "sweep-prompts": {"task": "volcanic.tasks.sweep_prompts", "schedule": 2.0, "options": {"expires": 10}},
    # Measures stored data for the quotas.
    "count-usage": {"task": "a2a_server.tasks.count_usage", "schedule": 60.0, "options": {"expires": 60}},
    # Makes up for lost messages: normally each decision starts the learning about its caller at once.
    "learn": {"task": "trust.tasks.learn_all", "schedule": 600.0, "options": {"expires": 600}},
    "sweep-reviews": {"task": "trust.tasks.sweep", "schedule": 10.0, "options": {"expires": 20}},
    # At night, UTC. `expires` drops a message that no worker takes within the day; the next night makes up for it.
    "prune": {
        "task": "a2a_server.tasks.prune",
        "schedule": crontab(hour="3", minute="17"),
        "options": {"expires": 80000},
    },
    "tell-owners": {"task": "volcanic.tasks.tell", "schedule": 5.0, "options": {"expires": 10}},
    "prune-notifications": {
        "task": "volcanic.tasks.prune",
        "schedule": crontab(hour="3", minute="37"),
        "options": {"expires": 80000},
    },
}

# A worker renews the lease of a running turn three times in this many seconds. An expired lease means a dead worker.
LEASE_SECONDS: int = env.int("LEASE_SECONDS", 30, validate=at_least(3))
TURN_TIMEOUT_SECONDS: int = env.int("TURN_TIMEOUT_SECONDS", 3600, validate=at_least(1))
# A stopping worker gives its turns this many seconds to finish. Then it ends the turns with "server restarted".
SHUTDOWN_GRACE_SECONDS: int = env.int("SHUTDOWN_GRACE_SECONDS", 20, validate=at_least(0))

RUNNER: str = env.str("RUNNER", "volcanic.runtime.assistant.AssistantRunner")
MODEL: str = env.str("MODEL", "faux")
MODEL_MAX_TOKENS: int = env.int("MODEL_MAX_TOKENS", 8192, validate=at_least(1))

# An owner who did nothing for this many seconds is told what waits for them.
IDLE_SECONDS: int = env.int("IDLE_SECONDS", 120, validate=at_least(0))
# Events are kept for this many days: an owner's page that was away for less time can resume from the log of events.
EVENT_DAYS: int = env.int("EVENT_DAYS", 3, validate=at_least(1))
# A working note is kept for this many seconds.
WORKING_MEMORY_SECONDS: int = env.int("WORKING_MEMORY_SECONDS", 86400, validate=at_least(1))

# The tool `bash` in the owner's own turns. `unsafe` runs commands as the worker's user, with all rights of that user.
OWNER_BASH: str = env.str("OWNER_BASH", "sandbox", validate=validate.OneOf(["sandbox", "unsafe"]))
BASH_TIMEOUT_SECONDS: int = env.int("BASH_TIMEOUT_SECONDS", 60, validate=at_least(1))
# Callers' turns can't write once the workspace takes this many bytes on the disk.
WORKSPACE_MAX_BYTES: int = env.int("WORKSPACE_MAX_BYTES", 1024 * 1024 * 1024, validate=at_least(1024))

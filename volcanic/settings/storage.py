"""Where state lives (PostgreSQL) and what may be lost (Redis: Celery's messages and Channels' wake-ups)."""

from typing import Any

from volcanic.processes import embedded
from volcanic.settings.env import PRODUCTION, VAR_DIR, at_least, env

_embedded = embedded.urls(VAR_DIR)

# `postgresql://…`; a host that is a folder is a unix socket. Unset in development: the embedded server's.
DATABASES: dict[str, Any] = {
    "default": (env.dj_db_url("DATABASE_URL") if PRODUCTION else env.dj_db_url("DATABASE_URL", _embedded.database_url))
    or {}
}
WORKER_THREADS: int = env.int("WORKER_THREADS", 16, validate=at_least(1))
DB_THREADS: int = env.int("DB_THREADS", 4, validate=at_least(1))
# Without a pool Celery, which closes connections after each task, would connect anew for every task.
DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
    "min_size": 0,
    # A worker's threads each hold one during a turn; the rest is for the loop's threads, the keeper and spare.
    "max_size": (WORKER_THREADS or 0) + (DB_THREADS or 0) + 4,
    "timeout": 10,
}

# Long statements are planned once for each connection and not each time. A pooler that hands a connection to another
# client after each transaction (PgBouncer) needs this off: 0.
DB_PREPARE_THRESHOLD: int = env.int("DB_PREPARE_THRESHOLD", 3, validate=at_least(0))
if DB_PREPARE_THRESHOLD:
    DATABASES["default"]["OPTIONS"] |= {"server_side_binding": True, "prepare_threshold": DB_PREPARE_THRESHOLD}

# `redis://…`, `rediss://…` or `unix:///path?db=0`. Unset in development: the embedded server's.
REDIS_URL: str = (env.str("REDIS_URL") if PRODUCTION else env.str("REDIS_URL", _embedded.redis_url)) or ""
# Keeps installations that share a Redis apart: channels know no database number.
REDIS_PREFIX: str = env.str("REDIS_PREFIX", "volcanic")

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": REDIS_PREFIX},
    }
}

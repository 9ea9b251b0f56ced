"""Settings of storage: PostgreSQL for all state, Redis for messages that may be lost (Celery, Django Channels)."""

from typing import Any

from volcanic.processes import embedded
from volcanic.settings.env import PRODUCTION, VAR_DIR, at_least, env

_embedded = embedded.urls(VAR_DIR)

# `postgresql://…`; a folder as the host means a unix socket. The default in development is the embedded server.
DATABASES: dict[str, Any] = {
    "default": (env.dj_db_url("DATABASE_URL") if PRODUCTION else env.dj_db_url("DATABASE_URL", _embedded.database_url))
    or {}
}
WORKER_THREADS: int = env.int("WORKER_THREADS", 16, validate=at_least(1))
DB_THREADS: int = env.int("DB_THREADS", 4, validate=at_least(1))
# Celery closes connections after each task. Without a pool, every task would open a new connection.
DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
    "min_size": 0,
    # Each worker thread holds one connection during a turn. The rest is for database threads, the lease keeper and
    # spare.
    "max_size": (WORKER_THREADS or 0) + (DB_THREADS or 0) + 4,
    "timeout": 10,
}

# Prepared statements: long statements are planned once for each connection. Set this to 0 behind a pooler that gives a
# connection to another client after each transaction (PgBouncer).
DB_PREPARE_THRESHOLD: int = env.int("DB_PREPARE_THRESHOLD", 3, validate=at_least(0))
if DB_PREPARE_THRESHOLD:
    DATABASES["default"]["OPTIONS"] |= {"server_side_binding": True, "prepare_threshold": DB_PREPARE_THRESHOLD}

# `redis://…`, `rediss://…` or `unix:///path?db=0`. The default in development is the embedded server.
REDIS_URL: str = (env.str("REDIS_URL") if PRODUCTION else env.str("REDIS_URL", _embedded.redis_url)) or ""
# Separates installations that share a Redis, since Redis' publish/subscribe ignores database numbers.
REDIS_PREFIX: str = env.str("REDIS_PREFIX", "volcanic")

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": REDIS_PREFIX},
    }
}

"""One log stream: lines for people in development, JSON in production; secrets never."""

from typing import Any

import structlog
from environs import validate

from volcanic.redaction import redact_event
from volcanic.settings.env import PRODUCTION, env

LOG_LEVEL: str = env.str(
    "LOG_LEVEL", "INFO", validate=validate.OneOf(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
)
LOG_FORMAT: str = env.str(
    "LOG_FORMAT", "json" if PRODUCTION else "console", validate=validate.OneOf(["console", "json"])
)

_shared: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    # No local variables in tracebacks: they hold keys and callers' words.
    structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))
    if LOG_FORMAT == "json"
    else structlog.processors.format_exc_info,
    redact_event,
]

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "structlog": {
            "()": "structlog.stdlib.ProcessorFormatter",
            "foreign_pre_chain": _shared,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer()
                if LOG_FORMAT == "json"
                else structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0),
            ],
        }
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "structlog"},
        "nowhere": {"class": "logging.NullHandler"},
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL or "INFO"},
    "loggers": {
        "django.server": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "httpcore": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        "axes": {"level": "WARNING"},
        # These log addresses of the owner's channels, which hold tokens. volcanic.notifications.apprise_urls says what
        # went wrong.
        "apprise": {"handlers": ["nowhere"], "level": "WARNING", "propagate": False},
        "urllib3": {"level": "ERROR"},
        "requests_oauthlib": {"level": "ERROR"},
        "oauthlib": {"level": "ERROR"},
        "celery.app.trace": {"level": "WARNING"},  # "Task … succeeded" twice for every turn
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.beat": {"level": "WARNING"},
        # The SDK logs each refused request at WARNING with a traceback; the caller is told, the log need not be.
        "a2a": {"level": "ERROR"},
    },
}

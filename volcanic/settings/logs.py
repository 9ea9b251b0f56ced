"""Settings of logging: one stream of redacted events, as lines for people in development, as JSON in production."""

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
    # Tracebacks come without local variables, which hold keys and callers' texts.
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
        # Apprise logs the addresses of channels, which hold tokens. volcanic.notifications.apprise_urls reports errors
        # instead.
        "apprise": {"handlers": ["nowhere"], "level": "WARNING", "propagate": False},
        "urllib3": {"level": "ERROR"},
        "requests_oauthlib": {"level": "ERROR"},
        "oauthlib": {"level": "ERROR"},
        "celery.app.trace": {"level": "WARNING"},  # "Task … succeeded" twice for every turn
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.beat": {"level": "WARNING"},
        # The SDK logs each refused request at WARNING with a traceback. Such an error concerns the caller, who gets it.
        "a2a": {"level": "ERROR"},
    },
}

"""The A2A network: the server half, the client half, limits."""

from volcanic.settings.env import at_least, env

A2A_ENABLED: bool = env.bool("A2A_ENABLED", True)
A2A_CLIENT_ENABLED: bool = env.bool("A2A_CLIENT_ENABLED", False)

CARD_NAME: str = env.str("CARD_NAME", "Volcanic assistant")
CARD_DESCRIPTION: str = env.str(
    "CARD_DESCRIPTION", "A personal assistant that works for its owner and answers other agents on their behalf."
)
CARD_MAX_AGE_SECONDS: int = env.int("CARD_MAX_AGE_SECONDS", 60, validate=at_least(0))

MAX_HOPS: int = env.int("MAX_HOPS", 3, validate=at_least(0))
# Each file, in and out.
MAX_FILE_BYTES: int = env.int("MAX_FILE_BYTES", 10 * 1024 * 1024, validate=at_least(1))
MAX_BODY_BYTES: int = env.int("MAX_BODY_BYTES", 32 * 1024 * 1024, validate=at_least(1024))
# A blocking SendMessage that waits longer gets the task as it then is. Keep it under the reverse proxy's timeout.
BLOCKING_MAX_SECONDS: int = env.int("BLOCKING_MAX_SECONDS", 600, validate=at_least(1))
STREAM_MAX_AGE_SECONDS: int = env.int("STREAM_MAX_AGE_SECONDS", 3600, validate=at_least(1))
DUPLICATE_WINDOW_SECONDS: int = env.int("DUPLICATE_WINDOW_SECONDS", 600, validate=at_least(0))

# What URLs from outside (webhooks, files, agent cards) may lead to besides public addresses over HTTPS.
ALLOW_PRIVATE_URLS: bool = env.bool("ALLOW_PRIVATE_URLS", False)
ALLOWED_PRIVATE_HOSTS: list[str] = env.list("ALLOWED_PRIVATE_HOSTS", [])

# Webhooks: what the card says and what the methods do come from this one switch.
PUSH_ENABLED: bool = env.bool("PUSH_ENABLED", True)
MAX_PUSH_CONFIGS: int = env.int("MAX_PUSH_CONFIGS", 10, validate=at_least(1))

# What one caller may take; the owner can give a caller numbers of its own. 0 is no limit.
REQUESTS_PER_MINUTE: int = env.int("REQUESTS_PER_MINUTE", 600, validate=at_least(0))
MAX_RUNNING_TASKS: int = env.int("MAX_RUNNING_TASKS", 200, validate=at_least(0))
MAX_OPEN_CONTEXTS: int = env.int("MAX_OPEN_CONTEXTS", 1000, validate=at_least(0))
MAX_INBOX_BYTES: int = env.int("MAX_INBOX_BYTES", 512 * 1024 * 1024, validate=at_least(0))
MAX_STORED_TASKS: int = env.int("MAX_STORED_TASKS", 20000, validate=at_least(0))
# Of one address, whoever is behind it.
BAD_KEYS_PER_MINUTE: int = env.int("BAD_KEYS_PER_MINUTE", 120, validate=at_least(0))

# Tasks that ended so long ago go, with all that belongs to them. 0 keeps them.
RETENTION_DAYS: int = env.int("RETENTION_DAYS", 90, validate=at_least(0))

"""Settings of the A2A network: server, client, limits."""

from volcanic.settings.env import at_least, env

A2A_ENABLED: bool = env.bool("A2A_ENABLED", True)
A2A_CLIENT_ENABLED: bool = env.bool("A2A_CLIENT_ENABLED", False)

CARD_NAME: str = env.str("CARD_NAME", "Volcanic assistant")
CARD_DESCRIPTION: str = env.str(
    "CARD_DESCRIPTION", "A personal assistant that works for its owner and answers other agents on their behalf."
)
CARD_MAX_AGE_SECONDS: int = env.int("CARD_MAX_AGE_SECONDS", 60, validate=at_least(0))

MAX_HOPS: int = env.int("MAX_HOPS", 3, validate=at_least(0))
# Limit of each file, received or sent.
MAX_FILE_BYTES: int = env.int("MAX_FILE_BYTES", 10 * 1024 * 1024, validate=at_least(1))
MAX_BODY_BYTES: int = env.int("MAX_BODY_BYTES", 32 * 1024 * 1024, validate=at_least(1024))
# A blocking SendMessage that waits longer returns the unfinished task. Keep this below the reverse proxy's timeout.
BLOCKING_MAX_SECONDS: int = env.int("BLOCKING_MAX_SECONDS", 600, validate=at_least(1))
STREAM_MAX_AGE_SECONDS: int = env.int("STREAM_MAX_AGE_SECONDS", 3600, validate=at_least(1))
DUPLICATE_WINDOW_SECONDS: int = env.int("DUPLICATE_WINDOW_SECONDS", 600, validate=at_least(0))

# Targets that URLs from outside (webhooks, files, agent cards) may have besides public addresses over HTTPS.
ALLOW_PRIVATE_URLS: bool = env.bool("ALLOW_PRIVATE_URLS", False)
ALLOWED_PRIVATE_HOSTS: list[str] = env.list("ALLOWED_PRIVATE_HOSTS", [])

# Webhooks. This switch sets the capability in the agent card and turns the webhook methods on or off.
PUSH_ENABLED: bool = env.bool("PUSH_ENABLED", True)
MAX_PUSH_CONFIGS: int = env.int("MAX_PUSH_CONFIGS", 10, validate=at_least(1))

# Limits of one caller. The owner can set other limits for a caller. 0 means no limit.
REQUESTS_PER_MINUTE: int = env.int("REQUESTS_PER_MINUTE", 600, validate=at_least(0))
MAX_RUNNING_TASKS: int = env.int("MAX_RUNNING_TASKS", 200, validate=at_least(0))
MAX_OPEN_CONTEXTS: int = env.int("MAX_OPEN_CONTEXTS", 1000, validate=at_least(0))
MAX_INBOX_BYTES: int = env.int("MAX_INBOX_BYTES", 512 * 1024 * 1024, validate=at_least(0))
MAX_STORED_TASKS: int = env.int("MAX_STORED_TASKS", 20000, validate=at_least(0))
# Limit of one IP address, for all callers behind that address together.
BAD_KEYS_PER_MINUTE: int = env.int("BAD_KEYS_PER_MINUTE", 120, validate=at_least(0))

# Tasks that ended more than this many days ago are deleted, together with their rows and files. 0 keeps them.
RETENTION_DAYS: int = env.int("RETENTION_DAYS", 90, validate=at_least(0))

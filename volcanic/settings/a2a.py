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
MAX_BODY_BYTES: int = env.int("MAX_BODY_BYTES", 32 * 1024 * 1024, validate=at_least(1024))
# A blocking SendMessage that waits longer gets the task as it then is. Keep it under the reverse proxy's timeout.
BLOCKING_MAX_SECONDS: int = env.int("BLOCKING_MAX_SECONDS", 600, validate=at_least(1))
STREAM_MAX_AGE_SECONDS: int = env.int("STREAM_MAX_AGE_SECONDS", 3600, validate=at_least(1))
DUPLICATE_WINDOW_SECONDS: int = env.int("DUPLICATE_WINDOW_SECONDS", 600, validate=at_least(0))

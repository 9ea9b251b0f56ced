"""Settings of trust: skill handlers, reviews by the owner, learning."""

from volcanic.settings.env import at_least, env

# Dotted paths that skills may name as their handler. Owners choose among these and can name no others.
SKILL_HANDLERS: list[str] = env.list("SKILL_HANDLERS", [])

# A request that waits for the owner for this many seconds is rejected. The default is 7 days.
REVIEW_TTL: int = env.int("REVIEW_TTL", 7 * 24 * 3600, validate=at_least(1))
# The owner is told this many seconds before the rejection, idle or not.
REVIEW_WARN_SECONDS: int = env.int("REVIEW_WARN_SECONDS", 24 * 3600, validate=at_least(1))
# Time limit of triage, the turn that reads a request for the owner.
TRIAGE_TIMEOUT_SECONDS: int = env.int("TRIAGE_TIMEOUT_SECONDS", 120, validate=at_least(1))
# A caller at Observe moves to Learn after this many interactions without a decline. 0: only the owner moves callers.
LEARN_AFTER: int = env.int("LEARN_AFTER", 5, validate=at_least(0))
# Limits of one caller, 0 for no limit: requests that wait for the owner, and notify-user messages that the owner has
# not read.
MAX_WAITING_REVIEWS: int = env.int("MAX_WAITING_REVIEWS", 100, validate=at_least(0))
MAX_UNREAD_MESSAGES: int = env.int("MAX_UNREAD_MESSAGES", 1000, validate=at_least(0))

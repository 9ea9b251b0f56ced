"""What callers may ask for."""

from volcanic.settings.env import at_least, env

# Dotted paths of what skills may name as their handler: owners choose among these and can name nothing else.
SKILL_HANDLERS: list[str] = env.list("SKILL_HANDLERS", [])

# A request that waits for the owner for so many seconds is rejected; 7 days.
REVIEW_TTL: int = env.int("REVIEW_TTL", 7 * 24 * 3600, validate=at_least(1))
# So long before, the owner is told at once, idle or not.
REVIEW_WARN_SECONDS: int = env.int("REVIEW_WARN_SECONDS", 24 * 3600, validate=at_least(1))
# The turn that reads a request for the owner.
TRIAGE_TIMEOUT_SECONDS: int = env.int("TRIAGE_TIMEOUT_SECONDS", 120, validate=at_least(1))
# A caller at Observe goes to Learn after so many interactions without a decline. 0: only by the owner's hand.
LEARN_AFTER: int = env.int("LEARN_AFTER", 5, validate=at_least(0))
# Of one caller, 0 for no limit: requests that wait for the owner, and messages of notify-user that they have not read.
MAX_WAITING_REVIEWS: int = env.int("MAX_WAITING_REVIEWS", 100, validate=at_least(0))
MAX_UNREAD_MESSAGES: int = env.int("MAX_UNREAD_MESSAGES", 1000, validate=at_least(0))

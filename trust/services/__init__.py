"""The verbs of trust, each one transaction. Import them from here.

Inside, `reviews` may import `grants`, `grants` and `skills` may import nothing of the others but `audit`.
"""

from trust.services.callers import (
    RESERVED_NAMES,
    builtin_skills_ensure,
    caller_create,
    caller_set_enabled,
    caller_set_limits,
    caller_update,
    grant_add,
    grant_revoke,
    identified_caller_create,
    identity_add,
    identity_remove,
    key_add,
    key_note_use,
    key_revoke,
    key_rotate,
    webhook_secret_rotate,
)

__all__ = [
    "RESERVED_NAMES",
    "builtin_skills_ensure",
    "caller_create",
    "caller_set_enabled",
    "caller_set_limits",
    "caller_update",
    "grant_add",
    "grant_revoke",
    "identified_caller_create",
    "identity_add",
    "identity_remove",
    "key_add",
    "key_note_use",
    "key_revoke",
    "key_rotate",
    "webhook_secret_rotate",
]

"""What a turn, a note or a session is for, as the text that is stored with it."""

import uuid


def task_origin(task_id: uuid.UUID | str) -> str:
    """Returns the origin of what belongs to an A2A task."""
    return f"task:{task_id}"


def caller_scope(caller_id: int) -> str:
    """Returns what tells a caller apart for good; the scopes of its sessions begin with it."""
    return f"a2a-{caller_id}"


def session_scope(caller_id: int, context_id: str) -> str:
    """Returns the scope of the session that a caller has in one A2A context."""
    return f"{caller_scope(caller_id)}_{context_id}"

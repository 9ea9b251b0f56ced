"""Origins and scopes: texts stored with a turn, a note or a session that name the task or caller they belong to."""

import uuid


def task_origin(task_id: uuid.UUID | str) -> str:
    """Returns the origin of turns and notes that belong to an A2A task."""
    return f"task:{task_id}"


def caller_scope(caller_id: int) -> str:
    """Returns the permanent scope of a caller. The scopes of the caller's sessions begin with this text."""
    return f"a2a-{caller_id}"


def session_scope(caller_id: int, context_id: str) -> str:
    """Returns the scope of the session that a caller has in one A2A context."""
    return f"{caller_scope(caller_id)}_{context_id}"


def owner_scope(name: str) -> str:
    """Returns the scope of the session that an owner calls `name`. No caller's scope begins like it."""
    return f"owner_{name}"

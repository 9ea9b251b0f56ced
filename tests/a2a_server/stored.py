"""Rows and folders that are stored for tasks, counted and found."""

from collections.abc import Callable
from pathlib import Path

from a2a_server.models import (
    Artifact,
    InboundFile,
    PushConfig,
    PushDelivery,
    ReceivedMessage,
    Task,
    TaskEvent,
)
from volcanic.models import Session, Turn

MakeTask = Callable[..., Task]
THEIRS = (TaskEvent, Artifact, InboundFile, PushConfig, PushDelivery, ReceivedMessage)


def folder_of(task: Task) -> Path:
    """Returns the inbox folder of a task."""
    return task.caller.workspace.path / "inbox" / task.caller.name / str(task.pk)


def task_counts() -> list[int]:
    """Returns the numbers of tasks, of the rows of each table that are a task's, of sessions and of turns."""
    return [model.objects.count() for model in (Task, *THEIRS, Session, Turn)]


def stored_rows() -> tuple[int, ...]:
    """Returns the numbers of rows of each table that a message may add to."""
    return tuple(model.objects.count() for model in (Task, TaskEvent, ReceivedMessage, Session, InboundFile))

"""Snapshots of a task: the task as it was at one of its events, the content of a late delivery to a webhook."""

from typing import Any

from a2a_server.models import Task, TaskEvent
from volcanic.a2a_json import artifact_apply


def task_at(*, task: Task, seq: int) -> dict[str, Any]:
    """Returns the 1.0 wire form of a task as it was at its event `seq`, built from the event log. One statement.

    The log holds all that is needed, so no copy is stored with an event. Status and artifacts come from the events. The
    history holds the messages that had come by then.
    """
    status: dict[str, Any] = {}
    artifacts: dict[str, dict[str, Any]] = {}
    messages = 0
    events = TaskEvent.objects.filter(task=task, seq__lte=seq).order_by("seq")
    for payload in events.values_list("payload", flat=True):
        if "statusUpdate" in payload:
            now = payload["statusUpdate"]["status"]
            messages += _messages_added(status, now)
            status = now
        else:
            artifact_apply(artifacts, payload["artifactUpdate"])
    view: dict[str, Any] = {"id": str(task.pk), "contextId": task.context_id, "status": status}
    if artifacts:
        view["artifacts"] = list(artifacts.values())
    if messages:
        view["history"] = task.history[:messages]
    if task.metadata is not None:
        view["metadata"] = task.metadata
    return view


def _messages_added(before: dict[str, Any], now: dict[str, Any]) -> int:
    """Returns the number of messages that the history gained between the status `before` and the status `now`.

    The first status comes with the first message. A submission after a question adds the question and its answer. While
    the owner decides, each message of the caller's has a status of its own.
    """
    if not before:
        return 1
    if before["state"] == "TASK_STATE_INPUT_REQUIRED" and now["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_FAILED"):
        return 2 if "message" in before else 1
    return int(before["state"] == now["state"] == "TASK_STATE_AUTH_REQUIRED")

"""Requests of the load, each with the check of its answer."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.client import Answer

COMPLETED = "TASK_STATE_COMPLETED"
_GOING = frozenset({"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", COMPLETED})
PAGE_SIZE = 50


class WrongAnswerError(Exception):
    """A server gave a wrong answer."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request: its body, and the check of its answer.

    `check` returns the id of the answer's task ("" for none) and raises WrongAnswerError.
    """

    body: bytes
    check: Callable[[Answer], str]

    def is_done(self, answer: Answer) -> bool:
        """Returns whether the answer to a GetTask is a completed task."""
        return bool(_result(answer)["status"]["state"] == COMPLETED)


def make_call(measure: str, number: int, task_ids: list[str], total: int, webhook: str = "") -> Call:
    """Returns request `number` of a measure."""
    if measure == "get":
        return get_task(number, task_ids[number % len(task_ids)])
    if measure == "list":
        return Call(_body(number, "ListTasks", {}), lambda answer: _check_page(answer, total))
    text = f"hi there {number}"
    message = {"role": "ROLE_USER", "messageId": f"{_RUN}-{number}", "parts": [{"text": text}]}
    if measure in ("immediate", "push"):
        configuration: dict[str, Any] = {"returnImmediately": True}
        if measure == "push":
            configuration["taskPushNotificationConfig"] = {"url": webhook}
        params = {"message": message, "configuration": configuration}
        return Call(_body(number, "SendMessage", params), _check_accepted)
    if measure == "notify":
        params = {"message": message, "metadata": {"skill": "notify-user"}}
        return Call(_body(number, "SendMessage", params), lambda answer: _check_sent(answer, "Passed on to the owner."))
    if measure == "stream":
        return Call(
            _body(number, "SendStreamingMessage", {"message": message}), lambda answer: _check_stream(answer, text)
        )
    return Call(_body(number, "SendMessage", {"message": message}), lambda answer: _check_sent(answer, text))


def get_task(number: int, task_id: str) -> Call:
    """Returns a GetTask request."""
    return Call(_body(number, "GetTask", {"id": task_id}), lambda answer: _check_got(answer, task_id))


def _make_run() -> str:
    import uuid

    return uuid.uuid4().hex[:12]


_RUN = _make_run()  # keeps message ids of two loads apart


def _body(number: int, method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def _wrong(answer: Answer) -> WrongAnswerError:
    return WrongAnswerError(f"wrong answer, HTTP {answer.status}: {answer.body[:500].decode(errors='replace')}")


def _result(answer: Answer) -> Any:
    try:
        return json.loads(answer.body)["result"]
    except (ValueError, KeyError, TypeError):
        raise _wrong(answer) from None


def _texts(artifacts: list[dict[str, Any]]) -> str:
    return "".join(part["text"] for artifact in artifacts for part in artifact["parts"])


def _ensure(condition: Callable[[], bool], answer: Answer) -> None:
    try:
        right = answer.status == 200 and condition()
    except (KeyError, TypeError, IndexError):
        right = False
    if not right:
        raise _wrong(answer)


def _check_sent(answer: Answer, text: str) -> str:
    result = _result(answer)
    _ensure(
        lambda: result["task"]["status"]["state"] == COMPLETED and _texts(result["task"]["artifacts"]) == text, answer
    )
    return str(result["task"]["id"])


def _check_accepted(answer: Answer) -> str:
    result = _result(answer)
    _ensure(lambda: result["task"]["status"]["state"] in _GOING and bool(result["task"]["id"]), answer)
    return str(result["task"]["id"])


def _check_got(answer: Answer, task_id: str) -> str:
    result = _result(answer)
    _ensure(lambda: result["id"] == task_id and result["status"]["state"] == COMPLETED, answer)
    return task_id


def _check_page(answer: Answer, total: int) -> str:
    result = _result(answer)
    _ensure(
        lambda: (
            len(result["tasks"]) == PAGE_SIZE
            and result["totalSize"] >= total
            and bool(result["nextPageToken"])
            and all(task["status"]["state"] == COMPLETED for task in result["tasks"])
        ),
        answer,
    )
    return ""


def _check_stream(answer: Answer, text: str) -> str:
    """Checks a stream: the task first, then the text, and the final status last. Returns the task's id."""
    try:
        lines = [line[5:] for line in answer.body.splitlines() if line.startswith(b"data:")]
        events = [json.loads(line)["result"] for line in lines]
    except (ValueError, KeyError, TypeError):
        raise _wrong(answer) from None
    _ensure(lambda: _is_whole(events, text), answer)
    return str(events[0]["task"]["id"])


def _is_whole(events: list[dict[str, Any]], text: str) -> bool:
    task, updates = events[0]["task"], events[1:]
    artifacts = [
        *task.get("artifacts", []),
        *(e["artifactUpdate"]["artifact"] for e in updates if "artifactUpdate" in e),
    ]
    end = updates[-1]["statusUpdate"] if updates else task
    return bool(end["status"]["state"] == COMPLETED and _texts(artifacts) == text)

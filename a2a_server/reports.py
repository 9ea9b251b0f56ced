"""Reports: the texts that tell the owner of runs that a grant or their approval allowed."""

from collections.abc import Iterable, Mapping
from typing import Any

from trust.models import Skill
from volcanic.a2a_json import message_text
from volcanic.runtime.base import Outcome, TurnState
from volcanic.text import one_line

MAX_REQUEST, MAX_ANSWER, MAX_LISTED = 300, 500, 10
_WORDS = {TurnState.COMPLETED: "Answered", TurnState.INPUT_REQUIRED: "Asks the agent"}


def asked(message: Mapping[str, Any], first_message: Mapping[str, Any] | None, skill: Skill | None) -> str:
    """Returns the lines on a run's request.

    `message` is the message that the run answers. `first_message` is the message that began the task, None where
    `message` is that message. `skill` is None for a plain request.
    """
    for_skill = f" for {skill.name}" if skill else ""
    last = one_line(message_text(message), MAX_REQUEST)
    if first_message is None:
        return f"Asked{for_skill}: {last}"
    return f"Asked{for_skill}: {one_line(message_text(first_message), MAX_REQUEST)}\nThen: {last}"


def used(tools: Iterable[str], files: Iterable[str]) -> str:
    """Returns the lines on the tools that a run used and the files that it touched; "" without tools and files."""
    lines = {"Tools used": list(tools), "Files touched": list(files)}
    return "\n".join(f"{what}: {_listed(names)}." for what, names in lines.items() if names)


def report(request: str, outcome: Outcome, uses: str) -> str:
    """Returns the report of a run that ended by itself: request, answer or question, tools used, files touched.

    `request` is a text of `asked`, `uses` a text of `used`.
    """
    word = _WORDS.get(outcome.state) or outcome.state.value.capitalize()
    ended = f"{word}: {one_line(outcome.text, MAX_ANSWER) or '(nothing)'}"
    return "\n".join(line for line in (request, ended, uses) if line)


def broken_off(pending_report: str, answered: str, ended: str, reason: str) -> str:
    """Returns the report of a run that was ended from outside.

    `pending_report` holds the request and the tools and files used. `answered` is the answer so far, "" without an
    answer. `ended` is the task's new state, and `reason` the reason, "" without a reason.
    """
    lines = [pending_report]
    if answered:
        lines.append(f"Answered so far: {one_line(answered, MAX_ANSWER)}")
    lines.append(f"{ended}: {reason}" if reason else f"{ended}.")
    return "\n".join(lines)


def _listed(names: list[str]) -> str:
    more = len(names) - MAX_LISTED
    return ", ".join(one_line(name, 100) for name in names[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")

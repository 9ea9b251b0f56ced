"""What the owner is told afterwards of what was done without them."""

from a2a_server.sink import TaskSink
from trust.models import Skill
from volcanic.runtime.base import Outcome, Turn, TurnState
from volcanic.text import one_line

MAX_REQUEST, MAX_ANSWER, MAX_LISTED = 300, 500, 10


def report(turn: Turn, sink: TaskSink, outcome: Outcome, skill: Skill | None) -> str:
    """Returns the line for the owner: request, answer, tools used, files touched. "" while the caller is asked
    something: that is not the end."""
    if outcome.state is TurnState.INPUT_REQUIRED:
        return ""
    words = "Answered" if outcome.state is TurnState.COMPLETED else outcome.state.value.capitalize()
    lines = [
        f"Asked{f' for {skill.name}' if skill else ''}: {one_line(turn.text, MAX_REQUEST)}",
        f"{words}: {one_line(outcome.text, MAX_ANSWER) or '(nothing)'}",
    ]
    if sink.tools:
        lines.append(f"Tools used: {_listed(sink.tools)}.")
    if sink.files:
        lines.append(f"Files touched: {_listed(sink.files)}.")
    return "\n".join(lines)


def _listed(names: dict[str, None]) -> str:
    shown = list(names)[:MAX_LISTED]
    more = len(names) - len(shown)
    return ", ".join(one_line(name, 100) for name in shown) + (f" and {more} more" if more else "")

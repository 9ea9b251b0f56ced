"""What a caller's request leads to: one pure function, and the whole table in one test."""

from dataclasses import dataclass
from enum import StrEnum

from trust.models import CHAT, Level


class Mode(StrEnum):
    """What happens with a request."""

    FULL_TURN = "full_turn"
    REJECT = "reject"


@dataclass(frozen=True)
class Decision:
    """The mode, and the reason in words that the caller's model can use."""

    mode: Mode
    reason: str


def decide(*, level: Level, granted: frozenset[str], skill: str) -> Decision:
    """Returns what a request for `skill` by a caller at `level` with the `granted` skills leads to.

    Today only `chat` is acted on, and only for a caller at Act to whom it is granted.
    """
    if skill not in granted:
        return Decision(Mode.REJECT, f"The owner has not granted this agent the skill {skill!r}.")
    if skill != CHAT:
        return Decision(
            Mode.REJECT, f"The skill {skill!r} can't be asked for yet. Plain requests are the skill 'chat'."
        )
    if level is not Level.ACT:
        return Decision(
            Mode.REJECT,
            f"The owner has granted this agent the skill {skill!r}, but not yet to act without being asked "
            f"(its level is {level.label}).",
        )
    return Decision(Mode.FULL_TURN, "granted")

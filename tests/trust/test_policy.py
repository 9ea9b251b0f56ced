"""The whole table of what a request leads to."""

import pytest

from trust.models import Level
from trust.policy import Mode, decide

ALL = frozenset({"chat", "notify-user", "query-availability"})


@pytest.mark.parametrize(
    ("level", "granted", "skill", "mode", "said"),
    [
        *[(level, frozenset[str](), "chat", Mode.REJECT, "not granted") for level in Level],
        *[(level, frozenset({"chat"}), "scheduling", Mode.REJECT, "not granted") for level in Level],
        *[(level, ALL, "notify-user", Mode.REJECT, "can't be asked for yet") for level in Level],
        (Level.OBSERVE, ALL, "chat", Mode.REJECT, "Observe"),
        (Level.LEARN, ALL, "chat", Mode.REJECT, "Learn"),
        (Level.PROPOSE, ALL, "chat", Mode.REJECT, "Propose"),
        (Level.ACT, ALL, "chat", Mode.FULL_TURN, "granted"),
        (Level.ACT, frozenset({"chat"}), "chat", Mode.FULL_TURN, "granted"),
    ],
)
def test_table(level: Level, granted: frozenset[str], skill: str, mode: Mode, said: str) -> None:
    decision = decide(level=level, granted=granted, skill=skill)
    assert decision.mode is mode
    assert said in decision.reason

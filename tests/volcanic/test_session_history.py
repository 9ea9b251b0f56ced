"""How much of a session's past a turn is given."""

import pytest
from django.utils import timezone

from volcanic import selectors
from volcanic.models import Session, Turn, Workspace
from volcanic.selectors import session_history


@pytest.fixture
def session(workspace: Workspace) -> Session:
    """A session without a past."""
    return Session.objects.create(workspace=workspace, kind=Session.Kind.INBOUND, scope="a2a-1_x")


def passed(session: Session, origin: str, text: str = "x", pending: object = None) -> None:
    """One more turn has run in the session."""
    Turn.objects.create(
        session=session,
        origin=origin,
        prompt=text,
        messages=[{"role": "user", "text": text}],
        pending=pending,
        state="completed",
        started_at=timezone.now(),
    )


def test_the_newest_turns_are_given_oldest_first(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MAX_HISTORY_TURNS", 3)
    for number in range(5):
        passed(session, f"task:{number}")
    past, answers = session_history(session_id=session.pk, origin="task:new")
    assert [turn.origin for turn in past] == ["task:2", "task:3", "task:4"]
    assert answers is None


def test_long_turns_are_fewer_but_the_last_is_given(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MAX_HISTORY_CHARACTERS", 1000)
    for number in range(5):
        passed(session, f"task:{number}", "x" * 400)
    past, _ = session_history(session_id=session.pk, origin="task:new")
    assert [turn.origin for turn in past] == ["task:3", "task:4"]
    passed(session, "task:5", "x" * 5000)
    past, _ = session_history(session_id=session.pk, origin="task:new")
    assert [turn.origin for turn in past] == ["task:5"]


def test_the_question_that_is_answered_is_given_however_old(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MAX_HISTORY_TURNS", 2)
    passed(session, "task:old", "asked", pending={"tool_call_ids": ["1"]})
    for number in range(5):
        passed(session, f"task:{number}")
    past, answers = session_history(session_id=session.pk, origin="task:old")
    assert [turn.origin for turn in past] == ["task:3", "task:4", "task:old"]
    assert answers == past[-1]

"""Session history: the earlier turns that a turn is given."""

import pytest
from django.utils import timezone

from volcanic import selectors
from volcanic.models import Session, Turn, Workspace
from volcanic.selectors import session_history
from volcanic.services import turn_create


@pytest.fixture
def session(workspace: Workspace) -> Session:
    """A session without a past."""
    return Session.objects.create(workspace=workspace, kind=Session.Kind.INBOUND, scope="a2a-1_x")


def passed(
    session: Session, origin: str, text: str = "x", *, asker: str = "", pending: object = None, closes: bool = False
) -> None:
    """One more turn has run in the session. `closes`: it answered the asker's open question."""
    turn_create(
        session_id=session.pk,
        origin=origin,
        asker=asker or origin,
        prompt=text,
        messages=[{"role": "user", "text": text}],
        pending=pending,
        state="completed",
        started_at=timezone.now(),
        closes_question=closes,
    )


def test_the_newest_turns_are_given_oldest_first(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MAX_HISTORY_TURNS", 3)
    for number in range(5):
        passed(session, f"task:{number}")
    past, answers = session_history(session_id=session.pk, asker="task:new")
    assert [turn.origin for turn in past] == ["task:2", "task:3", "task:4"]
    assert answers is None


def test_long_turns_are_fewer_but_the_last_is_given(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MAX_HISTORY_CHARACTERS", 1000)
    for number in range(5):
        passed(session, f"task:{number}", "x" * 400)
    past, _ = session_history(session_id=session.pk, asker="task:new")
    assert [turn.origin for turn in past] == ["task:3", "task:4"]
    passed(session, "task:5", "x" * 5000)
    past, _ = session_history(session_id=session.pk, asker="task:new")
    assert [turn.origin for turn in past] == ["task:5"]


def test_the_question_that_is_answered_is_given_however_old(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "MAX_HISTORY_TURNS", 2)
    passed(session, "task:old", "asked", pending={"tool_call_ids": ["1"]})
    for number in range(5):
        passed(session, f"task:{number}")
    past, answers = session_history(session_id=session.pk, asker="task:old")
    assert [turn.origin for turn in past] == ["task:3", "task:4", "task:old"]
    assert answers == past[-1]


QUESTION = {"tool_call_ids": ["1"]}


def test_each_asker_answers_its_own_question(session: Session) -> None:
    """The newest open one, from a turn of any origin. An asker without a name answers none."""
    passed(session, "chat", "first", asker="owner", pending=QUESTION)
    passed(session, "console", "second", asker="owner", pending=QUESTION)
    passed(session, "task:1", "foreign", pending=QUESTION)
    for asker, text in (("owner", "second"), ("task:1", "foreign")):
        past, answers = session_history(session_id=session.pk, asker=asker)
        assert answers is not None
        assert (answers.messages, len(past)) == ([{"role": "user", "text": text}], 3)
        assert past[-1] == answers
    for asker in ("", "task:2"):
        assert session_history(session_id=session.pk, asker=asker)[1] is None


def test_a_question_is_open_until_a_turn_answers_it(session: Session) -> None:
    """Then none is, not even an older one; those of other askers stay."""
    passed(session, "chat", "older", asker="owner", pending=QUESTION)
    passed(session, "chat", "newer", asker="owner", pending=QUESTION)
    passed(session, "task:1", pending=QUESTION)
    passed(session, "watch:1", "beside", asker="owner")
    assert session_history(session_id=session.pk, asker="owner")[1] is not None
    passed(session, "chat", "answer", asker="owner", closes=True)
    assert session_history(session_id=session.pk, asker="owner")[1] is None
    assert session_history(session_id=session.pk, asker="task:1")[1] is not None
    # The answer may ask again.
    passed(session, "chat", "again", asker="owner", pending=QUESTION)
    passed(session, "chat", "and again", asker="owner", pending=QUESTION, closes=True)
    assert Turn.objects.filter(asker="owner", pending__isnull=False).count() == 1
    past, answers = session_history(session_id=session.pk, asker="owner")
    assert answers is not None
    assert answers.messages == [{"role": "user", "text": "and again"}]
    assert [turn.pending for turn in past] == [None, None, QUESTION, None, None, None, QUESTION]


def test_another_sessions_question_is_none(session: Session) -> None:
    other = Session.objects.create(workspace=session.workspace, kind=Session.Kind.OWNER, scope="owner_main")
    passed(other, "chat", asker="owner", pending=QUESTION)
    past, answers = session_history(session_id=session.pk, asker="owner")
    assert (list(past), answers) == ([], None)
    passed(session, "chat", asker="owner", closes=True)
    assert session_history(session_id=other.pk, asker="owner")[1] is not None

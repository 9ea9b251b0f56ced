"""Prompts of an owner's session: a queue, one running at a time, leases, stopping, and what the transcript keeps."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone

from tests.waiting import wait_for
from volcanic.events import events_after
from volcanic.models import Prompt, Session, Turn, Workspace
from volcanic.presence import PresenceStatus, presence_of
from volcanic.runtime import tools
from volcanic.runtime.base import Inbound, Outcome, TurnState
from volcanic.runtime.tools import ToolContext
from volcanic.turns import leases, owner, prompts
from volcanic.turns.buffer import Chunk
from volcanic.turns.owner import prompt_run
from volcanic.turns.prompts import (
    owner_session,
    prompt_claim,
    prompt_finish,
    prompt_stop,
    prompt_submit,
    prompt_write,
    prompts_clear,
    prompts_sweep,
)

Say = Callable[..., Prompt]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker_is_away")]

DONE = Outcome(state=TurnState.COMPLETED, text="done")


@pytest.fixture
def session(workspace: Workspace) -> Session:
    """The owner's conversation."""
    return owner_session(workspace=workspace)


@pytest.fixture
def say(session: Session) -> Say:
    """Queues a prompt."""

    def say(text: str, **members: Any) -> Prompt:
        return prompt_submit(session=session, text=text, origin="test", **members)

    return say


def _run(session: Session) -> Prompt:
    """Runs the next prompt in this process and returns it."""
    waiting = Prompt.objects.filter(session=session, state="queued").order_by("id").first()
    assert waiting is not None
    prompt_run(session_id=session.pk)
    waiting.refresh_from_db()
    return waiting


def _claimed(session: Session) -> Prompt:
    prompt = prompt_claim(session_id=session.pk, worker="w")
    assert prompt is not None
    return prompt


def test_a_prompt_is_answered(session: Session, say: Say) -> None:
    say("hello")
    prompt = _run(session)
    assert (prompt.state, prompt.answer, prompt.lease_expires_at) == ("completed", "hello", None)
    turn = Turn.objects.get()
    assert (turn.session_id, turn.origin, turn.prompt, turn.state) == (session.pk, "test", "hello", "completed")


def test_the_conversation_goes_on(session: Session, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next turn is given what was said before."""
    given: list[int] = []

    class Counting:
        async def run(self, turn: Any, sink: Any) -> Outcome:
            given.append(len(turn.history))
            return Outcome(state=TurnState.COMPLETED, text="ok", messages=[{"role": "user", "text": turn.text}])

    monkeypatch.setattr(owner, "runner", Counting)
    for text in ("one", "two", "three"):
        say(text)
        _run(session)
    assert given == [0, 1, 2]


def test_one_at_a_time_in_their_order(session: Session, say: Say) -> None:
    first, second = say("first"), say("second")
    running = _claimed(session)
    assert running.pk == first.pk
    assert prompt_claim(session_id=session.pk, worker="other") is None
    assert prompt_finish(prompt=running, outcome=DONE)
    assert _claimed(session).pk == second.pk


def test_of_many_workers_one_takes_a_prompt(session: Session, say: Say) -> None:
    for number in range(3):
        say(str(number))
    taken: list[Prompt | None] = []
    barrier = threading.Barrier(6)

    def take() -> None:
        try:
            barrier.wait(60)
            taken.append(prompt_claim(session_id=session.pk, worker="w"))
        finally:
            connection.close()

    threads = [threading.Thread(target=take) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(taken) == 6
    assert [prompt.text for prompt in taken if prompt] == ["0"]


def test_sessions_do_not_wait_for_each_other(workspace: Workspace, session: Session, say: Say) -> None:
    say("here")
    other = owner_session(workspace=workspace, name="other")
    prompt_submit(session=other, text="there", origin="test")
    assert _claimed(session).text == "here"
    assert _claimed(other).text == "there"


def test_the_owner_is_busy_meanwhile(workspace: Workspace, session: Session, say: Say) -> None:
    say("hello")
    assert presence_of(workspace.pk) is PresenceStatus.AWAY
    running = _claimed(session)
    assert presence_of(workspace.pk) is PresenceStatus.BUSY
    prompt_finish(prompt=running, outcome=DONE)
    assert presence_of(workspace.pk) is PresenceStatus.AWAY


def test_a_worker_that_is_gone_fails_its_prompt_and_the_queue_goes_on(
    session: Session, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had said stays in the transcript, and it can write no more."""
    enqueued: list[int] = []
    monkeypatch.setattr(prompts, "prompts_enqueue", enqueued.append)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        first, second = say("first"), say("second")
        enqueued.clear()
        late = _claimed(session)
        assert prompt_write(prompt=late, chunk=Chunk("so far", "so far", append=False))
        assert prompts_sweep() == (0, 0)
        clock.shift(leases.lease_duration() + timedelta(seconds=1))
        failed, _ = prompts_sweep()
    assert failed == 1
    assert session.pk in enqueued
    first.refresh_from_db()
    assert (first.state, first.answer) == ("failed", "so far")
    assert Turn.objects.get().messages[-1] == {"role": "assistant", "text": "so far\nserver restarted"}
    assert not prompt_write(prompt=late, chunk=Chunk("more", "more", append=False))
    assert not prompt_finish(prompt=late, outcome=DONE)
    assert Turn.objects.count() == 1
    assert _claimed(session).pk == second.pk


def test_a_renewed_lease_is_kept_and_a_lost_one_is_found(session: Session, say: Say) -> None:
    say("first")
    running = _claimed(session)
    key = (running.pk, running.attempt)
    before = running.lease_expires_at
    with time_machine.travel(timezone.now() + timedelta(seconds=5), tick=False):
        prompts.LEASES.renew([key])
    running.refresh_from_db()
    assert before is not None
    assert running.lease_expires_at is not None
    assert running.lease_expires_at > before
    assert prompts.LEASES.lost([key, (running.pk, 99)]) == {(running.pk, 99)}
    prompt_stop(session=session)
    assert prompts.LEASES.lost([key]) == {key}


def test_a_lost_message_is_made_good(session: Session, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    enqueued: list[int] = []
    monkeypatch.setattr(prompts, "prompts_enqueue", enqueued.append)
    say("hello")
    enqueued.clear()
    assert prompts_sweep() == (0, 0)  # its message may still be on its way
    assert prompts_sweep(unclaimed_after=timedelta(0)) == (0, 1)
    assert enqueued == [session.pk]


def test_stop_ends_what_runs_within_seconds(session: Session, say: Say) -> None:
    """The worker notices by itself. What was said is kept; the queue stays."""
    say("working on it\nsleep: 3600")
    say("next")
    worker = threading.Thread(target=_in_thread, args=(session.pk,))
    worker.start()
    wait_for(lambda: Prompt.objects.filter(answer__contains="working on it").exists())
    stopped = prompt_stop(session=session)
    worker.join(60)
    assert not worker.is_alive()
    assert stopped is not None
    stopped.refresh_from_db()
    assert (stopped.state, stopped.answer.strip()) == ("stopped", "working on it")
    assert Turn.objects.get().messages[-1]["text"].endswith("(stopped)")
    assert prompt_stop(session=session) is None
    assert _run(session).answer == "next"


def _in_thread(session_id: int) -> None:
    try:
        prompt_run(session_id=session_id)
    finally:
        connection.close()


def test_what_waits_can_be_taken_back(session: Session, say: Say) -> None:
    say("one")
    running = _claimed(session)
    say("two")
    assert prompts_clear(session=session) == 1
    assert prompt_finish(prompt=running, outcome=DONE)
    assert prompt_claim(session_id=session.pk, worker="w") is None


@pytest.mark.parametrize("text", ["", " \n "])
def test_an_empty_text_is_refused(say: Say, text: str) -> None:
    with pytest.raises(ValidationError):
        say(text)
    assert Prompt.objects.count() == 0


def test_a_queue_has_its_bounds(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "MAX_QUEUED", 2)
    say("one")
    say("two")
    with pytest.raises(ValidationError, match="2 prompts wait"):
        say("three")
    with pytest.raises(ValidationError, match="200001 characters"):
        say("x" * 200_001)


def test_a_failure_is_told(session: Session, say: Say) -> None:
    say("fail: the provider is down")
    prompt = _run(session)
    assert prompt.state == "failed"
    assert "the provider is down" in prompt.answer
    say("still there?")
    assert _run(session).answer == "still there?"


def test_no_question_to_the_other_side(session: Session, say: Say) -> None:
    """`request_input` is for callers' turns: the owner is asked in words."""
    say("ask: which day?")
    assert _run(session).state == "completed"


def test_events_show_it_all(workspace: Workspace, session: Session, say: Say) -> None:
    """The log alone tells what a page would show: what was asked, each piece of the answer, and how it ended."""
    prompt = say("stream: 20")
    _run(session)
    page = events_after(workspace_id=workspace.pk, number=0)
    assert {event.subject for event in page.events} == {str(prompt.pk)}
    payloads = [event.payload for event in page.events]
    assert (payloads[0]["state"], payloads[0]["text"], payloads[1]["state"]) == ("queued", "stream: 20", "running")
    shown = ""
    for payload in payloads[2:-1]:
        shown = shown + payload["text"] if payload["append"] else payload["text"]
    assert payloads[-1]["state"] == "completed"
    assert payloads[-1]["answer"].startswith(shown)


# Confirmations: tools that need the owner's yes.


@pytest.fixture
def wipe() -> Iterator[list[str]]:
    """A tool that runs only after the owner's yes; the list is what it did."""
    done: list[str] = []

    async def wipe(context: ToolContext, what: str) -> str:
        """Deletes something."""
        done.append(what)
        return f"wiped {what}"

    tools.register("wipe", wipe, confirm=True)
    yield done
    tools.unregister("wipe")


WIPE = 'tool: wipe {"what": "the disk"}'


@pytest.mark.parametrize("answer", ["yes", "Yes!", "ok", "Go ahead.", "yes, please"])
def test_a_confirmed_tool_runs_after_a_yes(session: Session, say: Say, wipe: list[str], answer: str) -> None:
    say(WIPE)
    asked = _run(session)
    assert (asked.state, wipe) == ("input_required", [])
    assert asked.answer == 'May I run wipe with {"what": "the disk"}? Answer yes, or say what to do instead.'
    say(answer)
    assert _run(session).answer == "wiped the disk"
    assert wipe == ["the disk"]


@pytest.mark.parametrize("answer", ["no", "yes, but only the temp folder", "what disk?", "maybe"])
def test_anything_else_is_no_consent(session: Session, say: Say, wipe: list[str], answer: str) -> None:
    """The assistant is told what the owner said instead, and the question is closed."""
    say(WIPE)
    _run(session)
    say(answer)
    assert answer in _run(session).answer
    assert wipe == []
    say("yes")
    assert _run(session).answer == "yes"
    assert wipe == []


def test_a_follow_up_answers_nothing(session: Session, say: Say, wipe: list[str]) -> None:
    """What a remote agent says is no yes of the owner's; the owner's own still counts afterwards."""
    say(WIPE)
    _run(session)
    say("yes", kind=Prompt.Kind.FOLLOW_UP)
    assert _run(session).answer == "yes"
    assert wipe == []
    prompt_submit(session=session, text="yes", origin="elsewhere")
    assert _run(session).answer == "wiped the disk"


def test_callers_never_have_such_tools(wipe: list[str]) -> None:
    assert "wipe" in tools.allowed(None)
    assert "wipe" not in tools.allowed(Inbound(caller="bot", scope="a2a-1"))

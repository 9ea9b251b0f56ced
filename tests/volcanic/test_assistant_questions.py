"""`request_input`: a question ends the turn, the answer resumes it, and no provider sees a call without a result."""

from tests.openai_server import OpenAIServer, Reply
from tests.volcanic.turns import MakeTurn, RecordingSink, past_turn, question, said
from volcanic.runtime import tools
from volcanic.runtime.assistant import AssistantRunner
from volcanic.runtime.base import PastTurn, TurnState
from volcanic.runtime.history import NOT_ANSWERED
from volcanic.runtime.prompt import unframe

ASK = tools.REQUEST_INPUT
BOTH = frozenset({"add", ASK})


async def test_wrong_arguments_are_told_and_a_second_try_counts(
    openai_server: OpenAIServer, runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink
) -> None:
    openai_server.replies += [
        Reply(calls=(("c1", "add", '{"a": "x"}'), ("c2", ASK, "{}"))),
        Reply(calls=(("c3", ASK, '{"question": ""}'),)),
        Reply(calls=(("c4", ASK, '{"question": "How much?"}'),)),
    ]
    outcome = await runner.run(make_turn("go", tools=BOTH), sink)
    assert (outcome.state, outcome.text) == (TurnState.INPUT_REQUIRED, "How much?")
    assert sink.calls == []


async def test_question_and_answer(
    openai_server: OpenAIServer, runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink
) -> None:
    openai_server.replies += [question("c1", "Which day?"), Reply(chunks=("Booked.",)), Reply(chunks=("Bye.",))]
    asked = await runner.run(make_turn("book"), sink)
    assert (asked.state, asked.text) == (TurnState.INPUT_REQUIRED, "Which day?")
    assert sink.calls == []
    past = past_turn(asked)
    answered = await runner.run(make_turn("Monday", history=[past], answers=past), sink)
    assert (answered.state, answered.text) == (TurnState.COMPLETED, "Booked.")
    assert said(openai_server) == [("user", "book"), ("assistant", "Which day?"), ("tool", "Monday")]
    await runner.run(make_turn("thanks", history=[past, past_turn(answered)]), sink)
    assert said(openai_server)[2:] == [("tool", "Monday"), ("assistant", "Booked."), ("user", "thanks")]


async def test_question_without_an_answer_is_closed(
    openai_server: OpenAIServer, runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink
) -> None:
    openai_server.replies += [question("c1", "Which day?"), Reply(chunks=("ok",))]
    past = past_turn(await runner.run(make_turn("book"), sink))
    await runner.run(make_turn("never mind", history=[past]), sink)
    assert said(openai_server)[2:] == [("tool", NOT_ANSWERED), ("user", "never mind")]


async def test_answer_after_other_turns(
    openai_server: OpenAIServer, runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink
) -> None:
    openai_server.replies += [
        question("c1", "Which day?"),
        Reply(chunks=("Sunny.",)),
        question("c1", "Which hour?"),  # some servers number their calls anew in each response
        Reply(chunks=("Booked.",)),
        Reply(chunks=("Bye.",)),
    ]
    day = past_turn(await runner.run(make_turn("book"), sink))
    other = past_turn(await runner.run(make_turn("weather?", history=[day]), sink))
    hour = past_turn(await runner.run(make_turn("Monday", history=[other, day], answers=day), sink))
    done = past_turn(await runner.run(make_turn("ten", history=[day, other, hour], answers=hour), sink))
    booking = [
        ("user", "weather?"),
        ("assistant", "Sunny."),
        ("user", "book"),
        ("assistant", "Which day?"),
        ("tool", "Monday"),
        ("assistant", "Which hour?"),
        ("tool", "ten"),
    ]
    assert said(openai_server) == booking
    await runner.run(make_turn("thanks", history=[day, other, hour, done]), sink)
    assert said(openai_server) == [*booking, ("assistant", "Booked."), ("user", "thanks")]


async def test_two_questions_and_a_tool_in_one_response(
    openai_server: OpenAIServer, runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink
) -> None:
    calls = (
        ("c1", ASK, '{"question": "Which day?"}'),
        ("c2", "add", '{"a": 1}'),
        ("c3", ASK, '{"question": "Which hour?"}'),
    )
    openai_server.replies += [Reply(calls=calls), Reply(chunks=("Booked.",))]
    asked = await runner.run(make_turn("book", tools=BOTH), sink)
    assert (asked.state, asked.text) == (TurnState.INPUT_REQUIRED, "Which day?\n\nWhich hour?")
    assert sink.calls == [("add", {"a": 1, "b": 2})]
    past = past_turn(asked)
    outcome = await runner.run(make_turn("Monday at ten", history=[past], answers=past, tools=BOTH), sink)
    assert outcome.text == "Booked."
    results = {
        message["tool_call_id"]: unframe(message["content"])
        for message in openai_server.requests[-1]["messages"]
        if message["role"] == "tool"
    }
    assert results == {"c1": "Monday at ten", "c2": '{"sum":3,"for":"task-1"}', "c3": "Monday at ten"}


async def test_answer_to_what_another_runner_asked_is_a_prompt(
    openai_server: OpenAIServer, runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink
) -> None:
    openai_server.replies.append(Reply(chunks=("ok",)))
    past = PastTurn(origin="x", messages=[{"role": "user", "text": "a"}], pending={"theirs": 1})
    outcome = await runner.run(make_turn("b", history=[past], answers=past), sink)
    assert outcome.text == "ok"
    assert said(openai_server)[-1][1].endswith("b")

"""The scripted model's language, and the runner without a model. The sink must always end up with the answer."""

import asyncio
import subprocess
import sys

import pytest

from tests.volcanic.turns import MakeTurn, RecordingSink, RegisterTool, add, past_turn
from tests.waiting import PATIENCE
from volcanic.runtime.assistant import AssistantRunner
from volcanic.runtime.base import TurnFailedError, TurnState
from volcanic.runtime.echo import EchoRunner
from volcanic.runtime.faux import LONG_TEXT, parse


@pytest.fixture
def runner() -> AssistantRunner:
    return AssistantRunner("faux")


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        ("hello", "hello"),
        ("two\n\nlines \n", "two\n\nlines \n"),
        ("", "(empty message)"),
        ("\n", "\n"),
        ("stream: 3", "chunk 1 chunk 2 chunk 3"),
        ("before\nstream: 2\nafter", "before\nchunk 1 chunk 2\nafter"),
        ("sleep: 0.01", "Done."),
        ("stream: 0", "Done."),
        ("sleep: 0.01\nawake", "awake"),
        ("long\nnever sent", LONG_TEXT),
        ("sleep: soon", "sleep: soon"),
        ("stream: 1.5e3", "stream: 1.5e3"),
        ("tool: x {broken}", "tool: x {broken}"),
        ("tool: x [1]", "tool: x [1]"),
        ('tool: x {"a":' + "[" * 100_000, 'tool: x {"a":' + "[" * 100_000),
        ("ask: " + " " * 100_000, "ask: " + " " * 100_000),
        ("ask:", "ask:"),
        ("so long", "so long"),
        ("Ask: no command", "Ask: no command"),
    ],
)
async def test_script_is_answered(
    runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink, script: str, answer: str
) -> None:
    outcome = await runner.run(make_turn(script), sink)
    assert (outcome.state, outcome.text, outcome.message) == (TurnState.COMPLETED, answer, "")
    assert sink.shown == answer


async def test_prompt_without_a_frame_is_a_script_too(
    runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink
) -> None:
    outcome = await runner.run(make_turn("x", prompt="stream: 1"), sink)
    assert outcome.text == "chunk 1"


async def test_stream_comes_in_pieces(runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink) -> None:
    await runner.run(make_turn("stream: 3"), sink)
    assert sink.deltas == [("chunk 1", False), (" chunk 2", False), (" chunk 3", False)]


async def test_fail_is_a_failure_the_caller_may_read(
    runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink
) -> None:
    with pytest.raises(TurnFailedError, match=r"\(500\): quota of \[redacted\] is used up$"):
        await runner.run(make_turn("fail: quota of sk-abcdefghijkl is used up"), sink)


async def test_one_runner_runs_many_turns_at_once(runner: AssistantRunner, make_turn: MakeTurn) -> None:
    sinks = [RecordingSink() for _ in range(20)]
    outcomes = await asyncio.gather(
        *(runner.run(make_turn(f"sleep: 0.01\n{number}"), sink) for number, sink in enumerate(sinks))
    )
    assert [outcome.text for outcome in outcomes] == [sink.shown for sink in sinks] == [str(n) for n in range(20)]


async def test_tool_is_called_and_its_result_told(
    runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink, register: RegisterTool
) -> None:
    register("add", add)
    script = 'a preamble\ntool: add {"a": 1}\nand that is that'
    outcome = await runner.run(make_turn(script, tools=frozenset({"add"})), sink)
    assert outcome.text == sink.shown == '{"sum":3,"for":"task-1"}\nand that is that'
    assert sink.calls == [("add", {"a": 1, "b": 2})]


async def test_sleep_can_be_cancelled(runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink) -> None:
    run = asyncio.create_task(runner.run(make_turn("first\nsleep: 1000"), sink))
    while not sink.shown:
        await asyncio.sleep(0.005)
    run.cancel()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(asyncio.CancelledError):
            await run
    assert sink.shown == "first"


async def test_ask_ends_the_turn_and_the_answer_goes_on(
    runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink
) -> None:
    asked = await runner.run(make_turn("ask: Which day?"), sink)
    assert (asked.state, asked.text) == (TurnState.INPUT_REQUIRED, "Which day?")
    past = past_turn(asked)
    outcome = await runner.run(make_turn("Monday\nask: not a script", history=[past], answers=past), sink)
    assert (outcome.state, outcome.text) == (TurnState.COMPLETED, "You said: Monday\nask: not a script")
    assert sink.shown == outcome.text


async def test_ask_twice_then_the_rest_of_the_script(
    runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink
) -> None:
    first = await runner.run(make_turn("ask: One?\nask: Two?\nthank you"), sink)
    one = past_turn(first)
    second = await runner.run(make_turn("1", history=[one], answers=one), sink)
    assert (second.state, second.text) == (TurnState.INPUT_REQUIRED, "Two?")
    two = past_turn(second)
    third = await runner.run(make_turn("2", history=[one, two], answers=two), sink)
    assert (third.state, third.text) == (TurnState.COMPLETED, "thank you")


async def test_ask_without_the_tool_is_told_so(
    runner: AssistantRunner, make_turn: MakeTurn, sink: RecordingSink
) -> None:
    outcome = await runner.run(make_turn("ask: Which day?", tools=frozenset()), sink)
    assert outcome.state is TurnState.COMPLETED
    assert "Unknown tool name: 'request_input'" in outcome.text


def test_parse_reads_windows_line_ends() -> None:
    assert [step.verb for step in parse("ask: a?\r\nlong\r\nsleep: 1\r\n")] == ["ask", "long", "sleep", "say"]


async def test_echo_answers_with_the_text(make_turn: MakeTurn, sink: RecordingSink) -> None:
    outcome = await EchoRunner().run(make_turn("ask: me\nno"), sink)
    assert (outcome.state, outcome.text) == (TurnState.COMPLETED, "ask: me\nno")
    assert outcome.messages == [{"role": "user", "text": "ask: me\nno"}, {"role": "assistant", "text": "ask: me\nno"}]
    assert sink.deltas == [("ask: me\nno", False)]


def test_echo_prompt_and_tools_need_no_pydantic_ai() -> None:
    code = (
        "import sys, volcanic.runtime.echo, volcanic.runtime.prompt, volcanic.runtime.tools;"
        "sys.exit('pydantic_ai' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

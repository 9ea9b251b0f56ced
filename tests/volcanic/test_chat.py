"""`manage.py chat` against the running product: answers as they come, the queue, the log, and what a script sees."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.product import Product
from tests.waiting import wait_for
from volcanic.models import Prompt, Session, Workspace
from volcanic.tasks import sweep_prompts

PROJECT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.usefixtures("transactional_db")


class Shell:
    """Runs `manage.py chat` as a person would."""

    def __init__(self, product: Product) -> None:
        self._environment = product.environment

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Starts it."""
        return subprocess.Popen(
            [sys.executable, "manage.py", "chat", *arguments],
            cwd=PROJECT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Runs it to its end. Returns its exit status, and what it wrote."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err


@pytest.fixture
def chat(product: Product, workspace: Workspace) -> Shell:
    product.revive()
    return Shell(product)


def test_it_answers(chat: Shell) -> None:
    assert chat("hello", "--wait", "120")[:2] == (0, "hello\n")
    status, out, _ = chat("What", "now?", "--json")
    assert (status, json.loads(out)["answer"]) == (0, "What now?")


def test_the_answer_is_printed_as_it_streams(chat: Shell) -> None:
    """Its beginning is there while the assistant still speaks."""
    process = chat.start("stream: 2\nsleep: 600")
    assert process.stdout is not None
    assert process.stdout.read(7) == "chunk 1"
    assert Prompt.objects.get().state == "running"
    assert chat("/stop")[:2] == (0, "Stopped.\n")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "stopped" in err


def test_the_log(chat: Shell) -> None:
    assert chat("--log")[1] == "Nothing was said yet.\n"
    for text in ("one", "two\x1b[31m", "three"):
        chat(text)
    _, out, _ = chat("--log", "2")
    assert "> three" in out
    assert "> one" not in out
    assert "\x1b" not in out
    facts = json.loads(chat("--log", "2", "--json")[1])
    assert [(one["answer"], one["state"], one["origin"]) for one in facts[1:]] == [("three", "completed", "chat")]
    assert chat("--log", "--session", "other")[1] == "Nothing was said yet.\n"
    assert not Session.objects.filter(scope="owner_other").exists()


def test_no_answer_in_time_is_no_end(chat: Shell) -> None:
    status, _, err = chat("sleep: 600", "--wait", "0.1")
    assert status == 3
    assert "It goes on" in err
    wait_for(lambda: Prompt.objects.get().state == "running")
    chat("/stop")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((), "There is no text."), (("hi", "--session", " "), "1 to 100 characters"), (("hi", "--workspace", "x"), "'x'")],
)
def test_what_can_not_be_said(chat: Shell, arguments: tuple[str, ...], error: str) -> None:
    status, _, err = chat(*arguments)
    assert (status, error in err, "Traceback" in err) == (1, True, False)


def test_a_worker_killed_in_between(chat: Shell, product: Product) -> None:
    """The prompt that ran has failed with "server restarted", and the queue goes on."""
    first = chat.start("sleep: 600")
    wait_for(lambda: Prompt.objects.filter(state="running").exists())
    second = chat.start("second")
    wait_for(lambda: Prompt.objects.filter(state="queued").exists())
    product.signal("worker", signal.SIGKILL)
    product.start_worker()
    wait_for(lambda: _swept() and Prompt.objects.filter(state="failed").exists())
    out, err = first.communicate(timeout=300)
    assert (first.returncode, out) == (1, "server restarted\n")
    wait_for(lambda: _swept() and Prompt.objects.filter(state="completed").exists())
    out, err = second.communicate(timeout=300)
    assert (second.returncode, out) == (0, "second\n")
    assert "waits behind" in err


def test_a_worker_that_is_stopped_ends_what_runs(chat: Shell, product: Product) -> None:
    """SIGTERM: after its grace the worker itself says so, and no lease has to pass."""
    first = chat.start("sleep: 600")
    wait_for(lambda: Prompt.objects.filter(state="running").exists())
    product.signal("worker", signal.SIGTERM)
    out, _ = first.communicate(timeout=300)
    assert (first.returncode, out) == (1, "server restarted\n")
    wait_for(lambda: not product.runs("worker"))
    product.start_worker()
    assert chat("still there?")[:2] == (0, "still there?\n")


def _swept() -> bool:
    sweep_prompts.delay()
    return True


def test_a_shell_that_is_left_leaves_the_prompt(chat: Shell) -> None:
    process = chat.start("sleep: 600")
    wait_for(lambda: Prompt.objects.filter(state="running").exists())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "It goes on" in err
    assert Prompt.objects.get().state == "running"
    chat("/stop")

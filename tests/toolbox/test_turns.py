"""The tools in turns: which ones a turn is offered, by the scripted model, and on the running product."""

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Keyed
from tests.product import Api, Product, message
from tests.toolbox.conftest import MakeContext
from tests.volcanic.turns import RecordingSink
from volcanic.aio.db import run_db
from volcanic.models import Memory, Notification, Workspace
from volcanic.runtime import tools
from volcanic.runtime.base import Inbound, Turn
from volcanic.runtime.prompt import frame_inbound, unframe
from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.toolbox import notify
from volcanic.toolbox.notify import notify_owner
from volcanic.toolbox.sandbox import sandbox

READING = {"read_file", "list_files", "search_files", "recall"}
ALL = READING | {"write_file", "edit_file", "remember", "send", "request_input"}


def test_which_tools_a_turn_is_offered() -> None:
    caller = Inbound(caller="travel-bot", scope="a2a-1", notifier=True)
    quiet = Inbound(caller="travel-bot", scope="a2a-1")
    bash = {"bash"} if sandbox().works else set()
    assert tools.allowed(caller) == ALL | bash | {"notify_owner"}
    assert tools.allowed(quiet) == tools.allowed(None) == ALL | bash


def test_tools_are_chosen_by_what_they_touch() -> None:
    caller = Inbound(caller="travel-bot", scope="a2a-1", notifier=True)
    assert tools.allowed(caller, changes=()) == READING
    assert tools.allowed(caller, reads={tools.MEMORY}, changes={tools.CALLER}) == {"recall", "request_input"}
    assert tools.allowed(caller, changes={tools.OWNER}) == READING | {"notify_owner"}
    with pytest.raises(ValueError, match="names unknown resources: moon"):
        tools.register("fly", notify_owner, changes={"moon"})


def test_the_frame_mentions_the_notifier_only_where_it_is() -> None:
    assert "notify_owner" in frame_inbound(caller="travel-bot", text="hi", notify_owner=True)
    assert "notify_owner" not in frame_inbound(caller="travel-bot", text="hi")
    assert unframe(frame_inbound(caller="travel-bot", text="hi", notify_owner=True)) == "hi"


def test_tools_are_registered_without_heavy_imports() -> None:
    code = (
        "import django; django.setup()\n"
        "import sys; from volcanic.runtime import tools\n"
        "print('bash' in tools.known(), 'pydantic_ai' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "True False", done.stderr


async def test_the_scripted_model_uses_them(
    folder: Path, inbound: ToolContext, sink: RecordingSink, caller_context: MakeContext
) -> None:
    from volcanic.runtime.assistant import AssistantRunner

    script = "\n".join(
        [
            'tool: write_file {"path": "inbox/travel-bot/answer.txt", "content": "forty-two"}',
            'tool: send {"path": "inbox/travel-bot/answer.txt", "caption": "The answer"}',
            'tool: write_file {"path": "MEMORY.md", "content": "taken"}',
        ]
    )
    turn = Turn(
        session_id=1,
        origin="task:1",
        workspace=folder,
        prompt=frame_inbound(caller="travel-bot", text=script),
        text=script,
        tools=frozenset({"write_file", "send"}),
        deadline=inbound.deadline,  # type: ignore[arg-type]
        inbound=inbound.inbound,
    )
    outcome = await AssistantRunner("faux").run(turn, sink)
    assert outcome.text == "MEMORY.md is the owner's alone to change."
    assert [artifact["name"] for artifact in sink.artifacts] == ["answer.txt"]
    assert (folder / "MEMORY.md").read_text() == "MEMORY.md of the owner\n"


@pytest.mark.django_db(transaction=True)
async def test_notifying(
    workspace: Workspace, caller_context: MakeContext, own: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = caller_context(workspace_id=workspace.pk, session_id=None)
    assert await notify_owner(context, " Your flight\nis late. ") == "Your owner will see it."
    row = await run_db(Notification.objects.get)
    assert (row.text, row.caller, row.origin, row.read_at) == ("Your flight\nis late.", "travel-bot", "task:1", None)
    quiet = caller_context(workspace_id=workspace.pk, inbound=Inbound(caller="travel-bot", scope="a2a-1"))
    for refused in (quiet, own, caller_context()):
        with pytest.raises(ToolError, match="can't be notified"):
            await notify_owner(refused, "hello")
    for text in ("", "x" * 2001):
        with pytest.raises(ToolError, match="at most 2000"):
            await notify_owner(context, text)
    for _ in range(4):
        await notify_owner(context, "again")
    with pytest.raises(ToolError, match="5 times"):
        await notify_owner(context, "and again")
    monkeypatch.setattr(notify, "MAX_WAITING", 5)
    with pytest.raises(ToolError, match="has not read"):
        await notify_owner(caller_context(workspace_id=workspace.pk, session_id=None), "once more")


def _answer(api: Api, script: str) -> tuple[str, dict[str, Any]]:
    task = api.result("SendMessage", {"message": message(script)})["task"]
    artifacts = {artifact["artifactId"]: artifact for artifact in task["artifacts"]}
    return artifacts["response"]["parts"][0]["text"], artifacts


def test_on_the_running_product(api: Api, product: Product, workspace: Workspace, friend: Keyed) -> None:
    """A worker's own threads and loop, the database, the wire."""
    folder = product.folder / "workspaces" / workspace.slug
    (folder / "inbox").mkdir(parents=True, exist_ok=True)
    write = '{"path": "inbox/friend/x.txt", "content": "hello"}'
    text, artifacts = _answer(api, f'tool: write_file {write}\ntool: send {{"path": "inbox/friend/x.txt"}}')
    assert text == "Sent x.txt (5 bytes, text/plain)."
    (part,) = artifacts["file-x.txt"]["parts"]
    assert base64.b64decode(part["raw"]) == b"hello"
    assert (part["filename"], part["mediaType"]) == ("x.txt", "text/plain")

    told = 'tool: notify_owner {"text": "x is done"}\ntool: remember {"text": "x was asked for"}'
    assert _answer(api, told)[0] == "Remembered, marked as coming from friend."
    notification = Notification.objects.get(kind="note")
    assert (notification.text, notification.caller, notification.workspace) == ("x is done", "friend", workspace)
    assert notification.session is not None
    assert Memory.objects.get().source == f"a2a-{friend.caller.pk}"

    Workspace.objects.update(notify_owner=False)
    assert "notify_owner" in _answer(api, 'tool: notify_owner {"text": "again"}')[0]
    assert Notification.objects.filter(kind="note").count() == 1


@pytest.mark.usefixtures("needs_sandbox")
def test_commands_on_the_running_product(api: Api, product: Product, workspace: Workspace) -> None:
    """In a worker, commands are started from another thread than the main one, with the worker's secrets around."""
    (product.folder / "workspaces" / workspace.slug).mkdir(parents=True, exist_ok=True)
    text, _ = _answer(api, 'tool: bash {"command": "cat /proc/*/environ; id -u; sleep 1000 & echo done"}')
    assert text.endswith("1000\ndone")
    assert "DATABASE_URL" not in text

"""Commands of a caller's turn: ways out of the sandbox, past its limits and beyond its time, tried for real."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.toolbox.conftest import OWNERS, MakeContext
from tests.waiting import PATIENCE, wait_for
from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.toolbox import processes, shell
from volcanic.toolbox import sandbox as sandbox_module
from volcanic.toolbox.checks import owners_commands_are_isolated, sandbox_works
from volcanic.toolbox.sandbox import Sandbox
from volcanic.toolbox.shell import bash

isolated = pytest.mark.usefixtures("needs_sandbox")


@pytest.fixture
def marked() -> str:
    """A number of seconds to sleep that tells this test's processes from all others."""
    return f"100000.{time.time_ns()}"


def _running(mark: str) -> bool:
    """Tells whether any process of this machine has `mark` in its command line."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                if mark.encode() in (entry / "cmdline").read_bytes():
                    return True
            except OSError:
                continue
    return False


@isolated
async def test_it_works_in_the_workspace(folder: Path, inbound: ToolContext) -> None:
    assert await bash(inbound, "pwd; cat notes/trip.md | sort; cat MEMORY.md") == (
        "/workspace\nParis\nRome\nMEMORY.md of the owner"
    )
    await bash(inbound, "echo 1 > notes/new; echo 2 > inbox/travel-bot/new; mkdir notes/folder")
    assert (folder / "notes/new").read_text() == "1\n"
    assert (folder / "inbox/travel-bot/new").read_text() == "2\n"
    assert await bash(inbound, "true") == "(It printed nothing.)"
    assert await bash(inbound, "echo out; echo err >&2; exit 7") == "out\nerr\n(exit code 7)"
    assert await bash(inbound, "kill -9 $$") == "(exit code 137)"
    assert await bash(inbound, "read line || echo no input") == "no input"
    with pytest.raises(ToolError, match="too long"):
        await bash(inbound, "x" * 100_001)
    assert "exit code 127" in await bash(inbound, "\ud800")


@isolated
@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "/proc/1/root/secret.txt", "/etc/passwd", "/etc/shadow", "/root", "/home", "/var", "{outside}"],
)
async def test_nothing_outside_is_there(folder: Path, inbound: ToolContext, path: str) -> None:
    answer = await bash(inbound, f"cat {path.format(outside=folder.parent / 'secret.txt')}; ls -la {path}")
    assert "4711" not in answer
    assert "root:x:" not in answer
    assert "No such file" in answer


@isolated
async def test_links_lead_nowhere(folder: Path, inbound: ToolContext) -> None:
    (folder / "notes/out").symlink_to(folder.parent / "secret.txt")
    answer = await bash(inbound, "cat notes/out; ln -s ../../secret.txt notes/up; cat notes/up")
    assert answer.count("No such file") == 2


@isolated
async def test_nothing_of_the_environment_leaks(inbound: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "leak-0815")
    everything = "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; ls -l /proc/*/fd"
    answer = await bash(inbound, everything)
    assert "HOME=/tmp" in answer
    assert "leak-0815" not in answer
    assert "SECRET_KEY" not in answer
    assert "DATABASE_URL" not in answer
    names = (await bash(inbound, "tr '\\0' '\\n' < /proc/$PPID/environ | cut -d= -f1")).split()
    assert sorted(names) == sorted(sandbox_module.ENVIRONMENT)


@isolated
async def test_the_owners_files_are_read_only(folder: Path, inbound: ToolContext) -> None:
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.name != "own.txt"}
    attempts = [f"echo taken > {name}" for name in OWNERS]
    attempts += [
        "mv MEMORY.md notes/",
        "rm -f MEMORY.md",
        "echo taken > notes/x; mv -f notes/x MEMORY.md",
        "ln MEMORY.md notes/hard && echo taken > notes/hard",
        "ln -s /workspace/MEMORY.md notes/soft; echo taken > notes/soft",
        "cp notes/trip.md memory.md",
        "echo taken > .volcanic/state.json",
        "mkdir .volcanic/new",
        "mv .volcanic notes/",
        "echo taken > .git/config",
        "echo taken > .envrc",
        "mv notes other",
        "mv inbox notes/",
        "mkdir inbox/new-bot",
        "rmdir inbox/travel-bot",
        "mount -o remount,rw /workspace",
        "umount /workspace/inbox",
        "unshare -Ur true",
        "chmod 777 /workspace",
    ]
    for attempt in attempts:
        answer = await bash(inbound, f"({attempt}) && echo SUCCEEDED; rm -f notes/x notes/soft")
        assert "SUCCEEDED" not in answer, attempt
    # What can be read can be copied; what was there is as it was.
    assert {file: file.read_bytes() for file in before} == before
    assert "MEMORY.md of the owner" in await bash(inbound, "cat MEMORY.md")


@isolated
async def test_an_owners_file_that_is_not_there_can_not_be_made(folder: Path, inbound: ToolContext) -> None:
    for name in OWNERS:
        (folder / name).unlink()
    await bash(inbound, f"for name in {' '.join(OWNERS)} memory.md .volcanic2; do echo taken > $name; done")
    assert sorted(os.listdir(folder)) == [".git", ".volcanic", "inbox", "notes"]


@isolated
async def test_an_owners_file_that_is_replaced_meanwhile_is_protected_too(folder: Path, inbound: ToolContext) -> None:
    command = "touch inbox/travel-bot/ready; until grep -q new MEMORY.md; do sleep 0.05; done; echo taken > MEMORY.md"
    running = asyncio.create_task(bash(inbound, command))
    await asyncio.to_thread(wait_for, (folder / "inbox/travel-bot/ready").exists)
    (folder / "draft").write_text("new")
    (folder / "draft").rename(folder / "MEMORY.md")
    assert "Read-only file system" in await running
    assert (folder / "MEMORY.md").read_text() == "new"


@isolated
@pytest.mark.parametrize("name", ["MEMORY.md", "inbox", "inbox/travel-bot"])
async def test_a_workspace_that_can_not_be_protected_has_no_commands(
    folder: Path, inbound: ToolContext, own: ToolContext, name: str
) -> None:
    (folder / name).rename(folder / "notes/away")
    (folder / name).symlink_to(folder / "notes/away")
    with pytest.raises(ToolError, match=r"can't be run for callers"):
        await bash(inbound, "echo taken > notes/away")
    assert await bash(own, "echo fine") == "fine"


@isolated
async def test_a_hard_link_to_an_owners_file_means_no_commands(folder: Path, inbound: ToolContext) -> None:
    os.link(folder / "MEMORY.md", folder / "notes/hard")
    with pytest.raises(ToolError, match=r"its MEMORY.md is a link"):
        await bash(inbound, "echo taken > notes/hard")


@isolated
async def test_other_callers_files_are_not_there(folder: Path, inbound: ToolContext) -> None:
    answer = await bash(inbound, "ls -R inbox; cat inbox/other-bot/theirs.txt; grep -r theirs-0815 . ; ls /proc/1/root")
    assert "theirs-0815" not in answer
    assert "other-bot:" not in answer
    assert "own.txt" in answer


@isolated
async def test_the_owners_own_turn_sees_and_changes_all_of_the_workspace(folder: Path, own: ToolContext) -> None:
    answer = await bash(own, "cat inbox/other-bot/theirs.txt; echo new > MEMORY.md; echo new > new; ls /root")
    assert answer.startswith("theirs-0815")
    assert "No such file" in answer
    assert (folder / "MEMORY.md").read_text() == (folder / "new").read_text() == "new\n"


@isolated
async def test_there_is_no_network(inbound: ToolContext) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        command = f"timeout 3 bash -c 'echo hi > /dev/tcp/127.0.0.1/{port}'; echo $?; cat /proc/net/dev | grep -c :"
        answer = await bash(inbound, command)
        listener.settimeout(0.1)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert "refused" in answer
    assert answer.endswith("\n1")


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this machine's, of the same user."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait(PATIENCE)


@isolated
async def test_no_process_outside_can_be_seen_or_killed(
    inbound: ToolContext, bystander: subprocess.Popen[bytes]
) -> None:
    answer = await bash(inbound, f"kill -9 {bystander.pid}; kill -9 -1; echo $?; ls -d /proc/[0-9]* | wc -l")
    assert "No such process" in answer or "exit code 137" in answer
    assert bystander.poll() is None
    assert int((await bash(inbound, "ls -d /proc/[0-9]* | wc -l")).strip()) < 6


@isolated
async def test_a_fork_bomb_is_bounded(inbound: ToolContext) -> None:
    """The bomb ends by itself at 1000 processes, so that the machine of the tests outlives it in any case."""
    answer = await bash(inbound, "for i in $(seq 1000); do sleep 30 & done; wait")
    assert "processes at a time" in answer or "Resource temporarily unavailable" in answer
    assert await bash(inbound, "echo alive") == "alive"


@isolated
async def test_memory_is_bounded(inbound: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "MemoryError" in await bash(inbound, "python3 -c 'bytearray(3 * 10**9)'")
    monkeypatch.setattr(processes, "MAX_MEMORY_BYTES", 100 * 1024**2)
    hog = "python3 -c 'import time; x = bytearray(60 * 1024**2); time.sleep(20)'"
    assert processes.TOO_LARGE in await bash(inbound, f"{hog} & {hog} & wait")


@isolated
async def test_one_file_is_bounded(folder: Path, inbound: ToolContext) -> None:
    answer = await bash(inbound, "head -c 200M /dev/zero > notes/large")
    assert "File size limit exceeded" in answer
    assert (folder / "notes/large").stat().st_size <= 100 * 1024**2


@isolated
async def test_the_disk_can_not_be_filled(
    folder: Path, inbound: ToolContext, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WORKSPACE_MAX_BYTES = 30 * 1024**2
    filling = "for i in $(seq 1000); do head -c 1M /dev/zero > notes/$i; sleep 0.01; done"
    assert processes.TOO_FULL in await bash(inbound, filling)
    assert sum(file.stat().st_size for file in folder.rglob("*")) < 300 * 1024**2
    with pytest.raises(ToolError, match="The workspace is full"):
        await bash(inbound, "true")


@isolated
async def test_the_disk_can_not_be_filled_with_deleted_files(
    folder: Path, inbound: ToolContext, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WORKSPACE_MAX_BYTES = 20 * 1024**2
    monkeypatch.setattr(processes, "_OTHERS_BYTES", 20 * 1024**2)
    hidden = 'for i in $(seq 3 60); do eval "exec $i> notes/x"; rm notes/x; head -c 2M /dev/zero >&$i; done; sleep 20'
    assert processes.TOO_FULL in await bash(inbound, hidden)


@isolated
async def test_scratch_space_is_bounded(inbound: ToolContext) -> None:
    fill = "for i in 1 2 3 4 5; do head -c 90M /dev/zero > /tmp/$i; head -c 90M /dev/zero > /dev/shm/$i; done"
    answer = await bash(inbound, f"{fill}; echo x > /x; echo x > /dev/x; du -cm /tmp /dev/shm | tail -1")
    assert "No space left" in answer
    assert answer.count("Read-only file system") == 2
    assert int(answer.splitlines()[-1].split()[0]) <= 256 + 64


@isolated
async def test_sleeping_past_the_limit(inbound: ToolContext, settings: Settings, marked: str) -> None:
    settings.BASH_TIMEOUT_SECONDS = 3  # enough to begin on a slow machine
    answer = await bash(inbound, f"echo begun; sleep {marked}")
    assert answer == "begun\n(The command was stopped: it took longer than 3 seconds.)"
    assert not _running(marked)


@isolated
async def test_the_turns_end_is_a_limit_too(caller_context: MakeContext, marked: str) -> None:
    soon = caller_context(deadline=timezone.now() + timedelta(seconds=3))
    assert "was stopped" in await bash(soon, f"trap '' TERM INT HUP; sleep {marked}")
    with pytest.raises(ToolError, match="no time left"):
        await bash(caller_context(deadline=timezone.now()), "true")
    assert not _running(marked)


@isolated
@pytest.mark.parametrize(
    "start", ["sleep {} &", "setsid nohup sleep {} > /dev/null 2>&1 &", "(trap '' TERM HUP; sleep {} & disown) &"]
)
async def test_nothing_outlives_the_command(inbound: ToolContext, marked: str, start: str) -> None:
    assert await bash(inbound, f"{start.format(marked)} echo done") == "done"
    wait_for(lambda: not _running(marked))


@isolated
async def test_nothing_outlives_the_turn(folder: Path, inbound: ToolContext, settings: Settings, marked: str) -> None:
    """A turn that is canceled kills its command at once."""
    settings.BASH_TIMEOUT_SECONDS = 100_000  # nothing else ends it
    command = f"touch notes/begun; setsid sleep {marked} & sleep {marked}"
    running = asyncio.create_task(bash(inbound, command))
    await asyncio.to_thread(wait_for, lambda: (folder / "notes/begun").exists() and _running(marked))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not _running(marked)


@isolated
async def test_too_much_output(inbound: ToolContext) -> None:
    answer = await bash(inbound, "echo first; yes")
    assert answer.startswith("first\ny\n")
    assert "characters left out" in answer
    assert answer.endswith(f"(The command was stopped: {processes.TOO_MUCH_OUTPUT}.)")
    assert len(answer) < 40_000


@isolated
async def test_one_command_at_a_time(folder: Path, inbound: ToolContext) -> None:
    command = "test -e notes/lock && echo TWICE; touch notes/lock; sleep 0.2; rm notes/lock"
    answers = await asyncio.gather(*(bash(inbound, command) for _ in range(3)))
    assert "TWICE" not in "".join(answers)


@pytest.fixture
def without_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sandbox_module, shell):
        monkeypatch.setattr(module, "sandbox", lambda: Sandbox(problem="bubblewrap (bwrap) is not installed"))
    monkeypatch.setattr("volcanic.toolbox.checks.sandbox", sandbox_module.sandbox)


async def test_without_a_sandbox_nobody_runs_commands(
    without_sandbox: None, inbound: ToolContext, own: ToolContext
) -> None:
    assert not shell.offered(inbound.inbound)
    assert not shell.offered(None)
    for context in (inbound, own):
        with pytest.raises(ToolError, match=r"bubblewrap \(bwrap\) is not installed"):
            await bash(context, "true")
    assert [message.id for message in sandbox_works()] == ["volcanic.I001"]


async def test_the_owner_runs_them_unsandboxed_only_where_that_is_set(
    without_sandbox: None,
    folder: Path,
    inbound: ToolContext,
    own: ToolContext,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    marked: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "leak-0815")
    assert owners_commands_are_isolated() == []
    settings.OWNER_BASH = "unsafe"
    assert [message.id for message in owners_commands_are_isolated()] == ["volcanic.W003"]
    assert shell.offered(None)
    assert not shell.offered(inbound.inbound)
    with pytest.raises(ToolError, match="not installed"):
        await bash(inbound, "true")
    answer = await bash(own, f"pwd; env; sleep {marked} & exit 3")
    assert answer.startswith(str(folder))
    assert "leak-0815" not in answer
    assert answer.endswith("(exit code 3)")
    settings.BASH_TIMEOUT_SECONDS = 1
    assert "was stopped" in await bash(own, f"sleep {marked}")
    wait_for(lambda: not _running(marked))


def test_a_broken_bubblewrap_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = sandbox_module.sandbox.__wrapped__()
    assert not found.works
    assert "No permissions to create new namespace" in found.problem
    monkeypatch.setenv("PATH", "/nowhere")
    assert sandbox_module.sandbox.__wrapped__().problem == "bubblewrap (bwrap) is not installed"

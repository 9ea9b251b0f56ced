"""Nothing outside of the workspace, nothing of other callers, nothing of the owner's: ways around it, tried."""

import itertools
import os
import shutil
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.toolbox.conftest import OWNERS
from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.toolbox.files import edit_file, list_files, read_file, search_files, write_file
from volcanic.toolbox.memory import remember
from volcanic.toolbox.paths import PathRefusedError, WorkspaceFiles
from volcanic.toolbox.rules import Rules
from volcanic.toolbox.send import send

CALLER = Rules("travel-bot")


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "notes/../../secret.txt",
        "notes/deep/../../../workspace/../secret.txt",
        "/etc/passwd",
        "/proc/self/environ",
        "/workspace/../secret.txt",
        "/workspaces/x",
        "link-out",
        "link-to-folder/secret.txt",
        "link-in-steps",
        "notes/link-up/secret.txt",
        "proc/self/environ",
        "proc/self/root/etc/passwd",
        "proc/self/cwd/x",
    ],
)
async def test_nothing_outside_is_read_sent_or_written(folder: Path, own: ToolContext, path: str) -> None:
    """Not even in the owner's turn."""
    (folder / "link-out").symlink_to(folder.parent / "secret.txt")
    (folder / "link-to-folder").symlink_to(folder.parent)
    (folder / "link-in-steps").symlink_to("notes/second")
    (folder / "notes/second").symlink_to("../../secret.txt")
    (folder / "notes/link-up").symlink_to("../..")
    (folder / "proc").symlink_to("/proc")
    for call in (
        read_file(own, path),
        send(own, path),
        write_file(own, path, "taken"),
        edit_file(own, path, "secret", "taken"),
        list_files(own, path),
        search_files(own, "secret", path),
    ):
        with pytest.raises(ToolError) as raised:
            await call
        assert "4711" not in str(raised.value)
    assert (folder.parent / "secret.txt").read_text() == "secret-4711"


async def test_links_inside_are_followed(folder: Path, own: ToolContext, inbound: ToolContext) -> None:
    (folder / "link").symlink_to("notes/trip.md")
    (folder / "absolute").symlink_to(folder / "notes")
    (folder / "as-in-the-sandbox").symlink_to("/workspace/notes/trip.md")
    (folder / "notes/deep/up").symlink_to("../trip.md")
    for path in ("link", "absolute/trip.md", "as-in-the-sandbox", "notes/deep/up", "notes/deep/../trip.md"):
        assert await read_file(inbound, path) == "Rome\nParis\n"
    for path in ("/workspace/notes/trip.md", f"{folder}/notes/trip.md", "./notes//trip.md"):
        assert await read_file(own, path) == "Rome\nParis\n"
    assert await write_file(inbound, "link", "Oslo") == "Wrote notes/trip.md (4 bytes)."
    assert (folder / "link").is_symlink()


async def test_links_in_a_circle_end(folder: Path, own: ToolContext) -> None:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    with pytest.raises(ToolError, match="too many links"):
        await read_file(own, "a")


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 300, "d/" * 40 + "f", ""])
async def test_odd_names_are_refused_in_words(own: ToolContext, path: str) -> None:
    for call in (read_file(own, path), write_file(own, path, "x")):
        with pytest.raises(ToolError):
            await call


@pytest.mark.parametrize(
    "path", ["inbox/other-bot/theirs.txt", "inbox/travel-bot/../other-bot/theirs.txt", "notes/there", "Inbox/x/y"]
)
async def test_other_callers_files_are_not_there(folder: Path, inbound: ToolContext, path: str) -> None:
    """What is hidden and what is not there look the same."""
    (folder / "notes/there").symlink_to("../inbox/other-bot/theirs.txt")
    (folder / "Inbox/x").mkdir(parents=True)
    (folder / "Inbox/x/y").write_text("theirs-0815")
    with pytest.raises(ToolError, match=r"^There is no ") as raised:
        await read_file(inbound, path)
    with pytest.raises(ToolError) as missing:
        await read_file(inbound, path.replace("other-bot", "never-bot"))
    assert str(raised.value).replace("other-bot", "never-bot") == str(missing.value)
    with pytest.raises(ToolError):
        await write_file(inbound, path, "taken")
    for call in (list_files(inbound, deep=True), search_files(inbound, "theirs-0815"), list_files(inbound, "inbox")):
        assert "other-bot" not in await call


async def test_own_inbox_is_there(inbound: ToolContext) -> None:
    assert await list_files(inbound, "inbox", deep=True) == "inbox/travel-bot/\ninbox/travel-bot/own.txt (4 bytes)"
    assert await write_file(inbound, "inbox/travel-bot/7/answer.txt", "yes") == (
        "Wrote inbox/travel-bot/7/answer.txt (3 bytes)."
    )
    assert await search_files(inbound, "MINE") == "inbox/travel-bot/own.txt:1: mine"


@pytest.mark.parametrize(
    "path",
    [
        *OWNERS,
        "memory.md",
        "Memory.MD",
        "MEMORY.md/x",
        "./MEMORY.md",
        "notes/../MEMORY.md",
        "/workspace/MEMORY.md",
        "to-memory",
        "notes/to-memory",
        "\uff2dEMORY.md",
        ".volcanic/state.json",
        ".volcanic/new/file",
        ".VOLCANIC/x",
        ".git/hooks/post-checkout",
        ".envrc",
        "to-volcanic/state.json",
        "inbox/new-bot/x",
        "inbox/loose.txt",
        "inbox",
    ],
)
async def test_the_owners_files_are_read_only_for_callers(folder: Path, inbound: ToolContext, path: str) -> None:
    (folder / "to-memory").symlink_to("MEMORY.md")
    (folder / "notes/to-memory").symlink_to("../to-memory")
    (folder / "to-volcanic").symlink_to(".volcanic")
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    with pytest.raises(ToolError):
        await write_file(inbound, path, "taken")
    with pytest.raises(ToolError):
        await edit_file(inbound, path, "owner", "caller")
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


async def test_the_owners_files_can_be_read_by_all_and_written_by_the_owner(
    folder: Path, own: ToolContext, inbound: ToolContext
) -> None:
    assert await read_file(inbound, "MEMORY.md") == "MEMORY.md of the owner\n"
    await write_file(own, "MEMORY.md", "new\n")
    await write_file(own, ".volcanic/x", "new")
    await remember(own, "Likes  tea.", always=True)
    assert (folder / "MEMORY.md").read_text() == "new\n- Likes tea.\n"


async def test_a_missing_owners_file_is_not_made_by_a_caller(folder: Path, inbound: ToolContext) -> None:
    (folder / "MEMORY.md").unlink()
    for call in (write_file(inbound, "MEMORY.md", "x"), remember(inbound, "x", always=True)):
        with pytest.raises(ToolError, match="owner's alone"):
            await call
    assert not (folder / "MEMORY.md").exists()


async def test_what_an_owners_file_is_a_link_to_is_read_only_too(folder: Path, inbound: ToolContext) -> None:
    for name, target in (("MEMORY.md", "notes/memory.md"), ("PERSONA.md", "notes/deep/persona.md")):
        (folder / name).unlink()
        (folder / name).symlink_to(target)
    (folder / "notes/memory.md").write_text("of the owner")
    for path in ("notes/memory.md", "MEMORY.md", "notes/deep/persona.md", "notes/deep/../memory.md"):
        with pytest.raises(ToolError, match="owner's alone"):
            await write_file(inbound, path, "taken")
    await write_file(inbound, "notes/other.md", "fine")


async def test_a_hard_link_to_an_owners_file_is_cut(folder: Path, inbound: ToolContext) -> None:
    os.link(folder / "MEMORY.md", folder / "notes/hard.md")
    await write_file(inbound, "notes/hard.md", "taken")
    assert (folder / "MEMORY.md").read_text() == "MEMORY.md of the owner\n"


async def test_no_pipe_socket_or_device_is_opened(folder: Path, own: ToolContext) -> None:
    os.mkfifo(folder / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    (folder / "device").symlink_to("/dev/zero")
    names = ["pipe", "socket", "device"]
    if os.geteuid() == 0:
        os.mknod(folder / "node", 0o600 | 0o020000, os.makedev(1, 5))
        names.append("node")
    with listener:
        for name in names:
            for call in (read_file(own, name), send(own, name), write_file(own, name, "x")):
                with pytest.raises(ToolError, match=r"regular|outside"):
                    await call
        assert "pipe (no regular file)" in await list_files(own)
        assert "Nothing in" in await search_files(own, "no such text")


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _swap(folder: Path, targets: dict[str, Path], done: threading.Event) -> None:
    """Swaps names in a folder for links and back. Between two steps a writer may make a name anew."""
    while not done.is_set():
        for name, target in targets.items():
            with suppress(OSError):
                (folder / name).rename(folder / f"{name}.away")
                _clear(folder / name)
                (folder / name).symlink_to(target)
                _clear(folder / name)
            while (folder / f"{name}.away").exists():
                with suppress(OSError):
                    _clear(folder / name)
                    (folder / f"{name}.away").rename(folder / name)


def test_a_link_that_is_swapped_in_gains_nothing(folder: Path) -> None:
    """A thread swaps a folder and a file for links to the outside, as fast as it can."""
    secret, done = folder.parent / "secret.txt", threading.Event()
    (folder / "real").mkdir()
    (folder / "real/secret.txt").write_text("harmless")
    (folder / "file").write_text("harmless")

    targets = {"real": folder.parent, "file": secret}
    thread = threading.Thread(target=_swap, args=(folder, targets, done))
    thread.start()
    read: set[bytes] = set()
    refused = 0
    try:
        for number in itertools.count():
            if number >= 1500 and refused:  # a link was met at least once
                break
            for path in ("real/secret.txt", "file"):
                try:
                    files = WorkspaceFiles(folder, CALLER)
                    if number % 5 == 0:
                        files.write(path, b"harmless")
                    else:
                        read.add(files.read(path, limit=100))
                except PathRefusedError:
                    refused += 1
    finally:
        done.set()
        thread.join()
    assert read == {b"harmless"}
    assert secret.read_text() == "secret-4711"


def test_a_link_that_is_swapped_in_just_before_opening(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without chance: between the look and the opening."""
    real_open = os.open

    def swap_then_open(path: str, *args: int, **kwargs: int) -> int:
        if path == "trip.md":
            (folder / "notes/trip.md").unlink()
            (folder / "notes/trip.md").symlink_to(folder.parent / "secret.txt")
        return real_open(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", swap_then_open)
    with pytest.raises(PathRefusedError, match="changed while"):
        WorkspaceFiles(folder, CALLER).read("notes/trip.md", limit=100)


async def test_writing_is_all_or_nothing(folder: Path, own: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    (folder / "notes/trip.md").chmod(0o640)
    await write_file(own, "notes/trip.md", "Oslo")
    assert (folder / "notes/trip.md").stat().st_mode & 0o777 == 0o640
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ToolError, match="the disk is full"):
        await write_file(own, "notes/trip.md", "Bergen")
    assert (folder / "notes/trip.md").read_text() == "Oslo"
    assert not [name for name in os.listdir(folder / "notes") if name.endswith(".tmp")]


def test_removing(folder: Path) -> None:
    files = WorkspaceFiles(folder, CALLER)
    files.write("inbox/travel-bot/task/a/b", b"x")
    files.write("inbox/travel-bot/task/c", b"x")
    (folder / "inbox/travel-bot/out").symlink_to("../..")
    files.remove("inbox/travel-bot/task/a/b")
    assert sorted(os.listdir(folder / "inbox/travel-bot/task")) == ["c"]
    for path in ("MEMORY.md", "inbox/travel-bot/out/MEMORY.md", "inbox/other-bot/theirs.txt", "../secret.txt", "notes"):
        with pytest.raises(PathRefusedError):
            files.remove(path)
    files.remove("inbox/travel-bot/task/c")
    files.remove("inbox/travel-bot/own.txt")
    files.remove("inbox/travel-bot/never")
    assert os.listdir(folder / "inbox/travel-bot") == ["out"]


async def test_errors_name_no_path_of_the_machine(folder: Path, own: ToolContext) -> None:
    with pytest.raises(ToolError) as raised:
        await read_file(own, "notes/none.md")
    assert str(raised.value) == "There is no file notes/none.md."
    gone = ToolContext(session_id=1, origin="", workspace=folder / "gone")
    with pytest.raises(ToolError, match=r"^The workspace has no folder\.$"):
        await list_files(gone)

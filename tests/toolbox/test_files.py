"""The file tools: reading, editing, listing, searching, and their limits."""

from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.toolbox import files
from volcanic.toolbox.files import edit_file, list_files, read_file, search_files, write_file


async def test_parts_of_a_file(folder: Path, inbound: ToolContext) -> None:
    (folder / "notes/long.txt").write_text("".join(f"line {number}\n" for number in range(1, 3001)))
    assert (await read_file(inbound, "notes/long.txt")).endswith(
        "(Lines 1 to 2000 of 3000; go on with start_line=2001.)"
    )
    assert await read_file(inbound, "notes/long.txt", start_line=2999) == (
        "line 2999\nline 3000\n\n(Lines 2999 to 3000 of 3000.)"
    )
    with pytest.raises(ToolError, match="has 3000 lines"):
        await read_file(inbound, "notes/long.txt", start_line=3001)


async def test_a_long_line_is_cut(folder: Path, inbound: ToolContext) -> None:
    (folder / "notes/line.txt").write_text("x" * 200_000)
    assert len(await read_file(inbound, "notes/line.txt")) < files.MAX_SHOWN + 200


async def test_what_is_no_text_is_named(folder: Path, inbound: ToolContext) -> None:
    (folder / "notes/picture").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    with pytest.raises(ToolError, match=r"is no text: 10 bytes, image/png"):
        await read_file(inbound, "notes/picture")


async def test_size_caps(folder: Path, own: ToolContext, settings: Settings) -> None:
    settings.MAX_FILE_BYTES = 100
    (folder / "large").write_bytes(b"x" * 101)
    for call in (
        read_file(own, "large"),
        write_file(own, "new", "x" * 101),
        edit_file(own, "notes/trip.md", "R", "x" * 100),
    ):
        with pytest.raises(ToolError, match="over 100 bytes"):
            await call
    assert not (folder / "new").exists()


async def test_callers_can_not_fill_the_workspace(
    folder: Path, own: ToolContext, inbound: ToolContext, settings: Settings
) -> None:
    settings.WORKSPACE_MAX_BYTES = 200_000
    await write_file(inbound, "notes/a", "x" * 50_000)
    with pytest.raises(ToolError, match="The workspace is full"):
        await write_file(inbound, "notes/b", "x" * 150_000)
    await write_file(own, "notes/b", "x" * 150_000)
    with pytest.raises(ToolError, match="The workspace is full"):
        await write_file(inbound, "notes/c", "x")


async def test_edit(folder: Path, inbound: ToolContext) -> None:
    assert await edit_file(inbound, "notes/trip.md", "Rome", "Oslo") == "Replaced 1 place in notes/trip.md."
    assert (folder / "notes/trip.md").read_text() == "Oslo\nParis\n"
    for old, problem in (("London", "not in"), ("s", "2 times"), ("", "empty")):
        with pytest.raises(ToolError, match=problem):
            await edit_file(inbound, "notes/trip.md", old, "x")
    assert await edit_file(inbound, "notes/trip.md", "s", "", all=True) == "Replaced 2 places in notes/trip.md."
    (folder / "notes/dos.txt").write_bytes(b"a\r\nb\r\n")
    await edit_file(inbound, "notes/dos.txt", "b", "c")
    assert (folder / "notes/dos.txt").read_bytes() == b"a\r\nc\r\n"


async def test_list(folder: Path, inbound: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "notes/link").symlink_to("trip.md")
    assert await list_files(inbound, "notes") == "notes/deep/\nnotes/link (a link)\nnotes/trip.md (11 bytes)"
    assert await list_files(inbound, "notes/deep") == "(The folder is empty.)"
    for path, problem in (("notes/trip.md", "is no folder"), ("nowhere", "no folder nowhere")):
        with pytest.raises(ToolError, match=problem):
            await list_files(inbound, path)
    monkeypatch.setattr(files, "MAX_LISTED", 2)
    assert (await list_files(inbound)).endswith("(There is more: only the first 2 are listed. Look into a folder.)")


async def test_search(folder: Path, inbound: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "notes/deep/more.txt").write_text("a\nPARIS again " + "x" * 400)
    (folder / "notes/binary").write_bytes(b"Paris\0")
    found = await search_files(inbound, "paris")
    assert found.splitlines()[1] == "notes/trip.md:2: Paris"
    assert found.startswith("notes/deep/more.txt:2: PARIS again xxx")
    assert len(found) < 400
    assert await search_files(inbound, "paris", folder="notes", names="*.md") == "notes/trip.md:2: Paris"
    assert await search_files(inbound, "(a+)+$") == "Nothing in 9 files."
    for text in ("", "a\nb", "x" * 201):
        with pytest.raises(ToolError, match="within one line"):
            await search_files(inbound, text)
    monkeypatch.setattr(files, "SEARCHED_FILES", 1)
    assert "Not all files were searched" in await search_files(inbound, "paris")
    monkeypatch.undo()
    monkeypatch.setattr(files, "MAX_HITS", 1)
    assert "only the first 1 lines" in await search_files(inbound, "paris")

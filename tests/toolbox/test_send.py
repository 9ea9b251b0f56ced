"""Files for the other side, and what kind they are."""

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django.fixtures import Settings

from tests.toolbox.conftest import MakeContext
from tests.volcanic.turns import RecordingSink
from volcanic.media_types import UNKNOWN, sniff
from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.toolbox import send as send_module
from volcanic.toolbox.send import file_name, send


async def test_a_file_is_an_artifact(folder: Path, inbound: ToolContext, sink: RecordingSink) -> None:
    assert await send(inbound, "notes/trip.md", caption=" Where we went ") == "Sent trip.md (11 bytes, text/markdown)."
    assert sink.artifacts == [
        {
            "artifactId": "file-trip.md",
            "name": "trip.md",
            "description": "Where we went",
            "parts": [
                {
                    "raw": base64.b64encode(b"Rome\nParis\n").decode(),
                    "filename": "trip.md",
                    "mediaType": "text/markdown",
                }
            ],
        }
    ]


async def test_ids_are_unique_and_stable(
    folder: Path, caller_context: MakeContext, sink: RecordingSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "notes/deep/trip.md").write_text("other")
    first, later = caller_context(), caller_context()
    for context, path, name in (
        (first, "notes/trip.md", ""),
        (first, "notes/deep/trip.md", ""),
        (first, "notes/deep/trip.md", "x/trip.md"),
        (first, "notes/trip.md", ""),
        (later, "notes/trip.md", ""),
        (later, "notes/trip.md", "Reisebericht für Olga.md"),
        (later, "notes/trip.md", "レポート"),
        (later, "notes/trip.md", "response"),
    ):
        await send(context, path, name=name)
    assert [artifact["artifactId"] for artifact in sink.artifacts] == [
        *("file-trip.md", "file-trip.md-2", "file-x_trip.md", "file-trip.md", "file-trip.md"),
        *("file-Reisebericht-f-r-Olga.md", "file-unnamed", "file-response"),
    ]
    assert [artifact["name"] for artifact in sink.artifacts][5:7] == ["Reisebericht für Olga.md", "レポート"]
    monkeypatch.setattr(send_module, "MAX_FILES", 4)
    with pytest.raises(ToolError, match="At most 4 files"):
        await send(first, "notes/trip.md")


async def test_the_cap(folder: Path, inbound: ToolContext, sink: RecordingSink, settings: Settings) -> None:
    assert settings.MAX_FILE_BYTES == 10 * 1024 * 1024
    (folder / "notes/large.bin").write_bytes(b"\x01" * settings.MAX_FILE_BYTES)
    assert "10485760 bytes" in await send(inbound, "notes/large.bin")
    with (folder / "notes/large.bin").open("ab") as file:
        file.write(b"x")
    with pytest.raises(ToolError, match="over 10485760 bytes"):
        await send(inbound, "notes/large.bin")
    assert len(base64.b64decode(sink.artifacts[0]["parts"][0]["raw"])) == settings.MAX_FILE_BYTES
    assert len(sink.artifacts) == 1


async def test_an_empty_file_is_a_file(folder: Path, inbound: ToolContext, sink: RecordingSink) -> None:
    (folder / "notes/empty.txt").touch()
    await send(inbound, "notes/empty.txt")
    assert sink.artifacts[0]["parts"] == [{"raw": "", "filename": "empty.txt", "mediaType": "text/plain"}]


async def test_what_can_not_be_sent(folder: Path, inbound: ToolContext, caller_context: MakeContext) -> None:
    for path in ("notes", "notes/none", "inbox/other-bot/theirs.txt", "../secret.txt"):
        with pytest.raises(ToolError):
            await send(inbound, path)
    with pytest.raises(ToolError, match="can't be sent files"):
        await send(caller_context(sink=None), "notes/trip.md")


@given(st.text(max_size=300))
def test_file_names_are_names(name: str) -> None:
    made = file_name(name)
    assert not set("/\\\0\n") & set(made)
    assert len(made) <= send_module.MAX_NAME
    assert made not in (".", "..")
    made.encode()


def test_a_long_name_keeps_its_ending() -> None:
    assert file_name("x" * 300 + ".tar.gz").endswith("x.gz")


@pytest.mark.parametrize(
    ("head", "declared", "filename", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0", "text/plain", "x.txt", "image/png"),
        (b"MZ\x90\0", "image/png", "x.png", "application/vnd.microsoft.portable-executable"),
        (b"\x7fELF\x02", "image/png", "", "application/x-executable"),
        (b"<!DOCTYPE html><p>", "image/png", "x.png", "text/html"),
        (b"\xef\xbb\xbf <!-- a --><!-- b -->\n<HTML>", "text/plain", "", "text/html"),
        (b"<?xml version='1.0'?><svg onload='x'>", "image/png", "", "image/svg+xml"),
        (b"<?xml version='1.0'?><a/>", "application/xml; charset=utf-8", "", "application/xml"),
        (b"just words", "image/png", "x.png", "text/plain"),
        (b"just words", "", "x.md", "text/markdown"),
        (b"just words", "text/csv", "x.md", "text/csv"),
        (b"MZ is a word", "", "", "text/plain"),
        (b"BM too", "text/plain", "", "text/plain"),
        (b'{"a": 1}', "", "", "application/json"),
        (b'{"a": 1', "", "", "text/plain"),
        (b"PK\x03\x04\0", "", "x.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        (b"PK\x03\x04\0", "image/png", "", "application/zip"),
        (b"%PDF-1.7", UNKNOWN, "", "application/pdf"),
        (b"\0\1\2", "image/png", "x.png", UNKNOWN),
        (b"\0\1\2", "application/x-own", "", "application/x-own"),
        (b"\0\1\2", "text/plain", "", UNKNOWN),
        (b"\0\1\2", "nonsense", "", UNKNOWN),
        (b"", "image/png", "", "image/png"),
        (b"", "", "", UNKNOWN),
        ("é".encode() * 3000, "", "", "text/plain"),
        (b"a" + "é".encode() * 3000, "", "", "text/plain"),
        (b"caf\xe9", "", "", UNKNOWN),
    ],
)
def test_the_true_type(head: bytes, declared: str, filename: str, kind: str) -> None:
    """What a file is shows in its first bytes; its name and what the caller says count where they say nothing."""
    assert sniff(head, declared, filename) == kind


@given(st.binary(max_size=5000), st.text(max_size=50), st.text(max_size=50))
def test_every_type_is_a_type(head: bytes, declared: str, filename: str) -> None:
    assert sniff(head, declared, filename).count("/") == 1

"""Downloads through the guard: whole or not at all."""

import asyncio
import io
from pathlib import Path

import pytest

from tests.volcanic.peers import (
    answer,
    drip_body,
    refused,
    serving,
)
from tests.waiting import PATIENCE
from volcanic import outbound
from volcanic.outbound import client

pytestmark = pytest.mark.usefixtures("names")
opened = pytest.mark.usefixtures("peer_opened")


@opened
@pytest.mark.parametrize("size", [0, 1, 200_000])
async def test_a_download(size: int, tmp_path: Path) -> None:
    body = b"x" * size
    async with serving(answer(body, "Content-Type: Application/PDF; charset=x")) as server:
        url = f"http://peer.test:{server.port}/files/a%20b.pdf?token=secret"
        done = await outbound.download(url, limit=size, timeout=PATIENCE, into=tmp_path / "file")
        assert done == outbound.Downloaded(size, "application/pdf", "a b.pdf")
        assert (tmp_path / "file").read_bytes() == body
        file = io.BytesIO()
        assert await outbound.download(url, limit=size, timeout=PATIENCE, into=file) == done
        assert file.getvalue() == body


@opened
async def test_a_file_that_says_it_is_too_large_is_not_begun(tmp_path: Path) -> None:
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n") as server:
        attempt = outbound.download(
            f"http://peer.test:{server.port}/", limit=10, timeout=PATIENCE, into=tmp_path / "file"
        )
        await refused(attempt, "sends more than 10 bytes", permanent=True)
    assert not list(tmp_path.iterdir())


@opened
async def test_a_length_that_is_a_lie(tmp_path: Path) -> None:
    """More follows than was said: it is no part of the file, and no answer to the next request."""
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood, and evil") as server:
        url = f"http://peer.test:{server.port}/"
        await outbound.download(url, limit=4, timeout=PATIENCE, into=tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == b"good"
        attempt = outbound.download(url, limit=4, timeout=PATIENCE, into=tmp_path / "next")
        await refused(attempt, "does not speak HTTP", permanent=False)
        await outbound.download(url, limit=4, timeout=PATIENCE, into=tmp_path / "next")
        assert (tmp_path / "next").read_bytes() == b"good"


@opened
@pytest.mark.parametrize(
    ("status", "permanent"), [(204, False), (404, True), (410, True), (408, False), (429, False), (500, False)]
)
async def test_statuses_of_downloads(status: int, permanent: bool, tmp_path: Path) -> None:
    async with serving(answer(b"", status=f"{status} X")) as server:
        attempt = outbound.download(
            f"http://peer.test:{server.port}/", limit=9, timeout=PATIENCE, into=tmp_path / "file"
        )
        await refused(attempt, f"peer.test answered {status}$", permanent)
    assert not list(tmp_path.iterdir())


@opened
async def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    there, link = tmp_path / "there", tmp_path / "link"
    there.write_text("mine")
    link.symlink_to(tmp_path / "elsewhere")
    async with serving(answer(b"theirs")) as server:
        for into in (there, link):
            with pytest.raises(FileExistsError):
                await outbound.download(f"http://peer.test:{server.port}/", limit=9, timeout=PATIENCE, into=into)
    assert there.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "there"]


@opened
async def test_a_cancelled_download_leaves_nothing(tmp_path: Path) -> None:
    async with serving(drip_body) as server:
        url = f"http://peer.test:{server.port}/"
        download = asyncio.create_task(outbound.download(url, limit=5000, timeout=PATIENCE, into=tmp_path / "file"))
        while not (tmp_path / "file").exists():
            await asyncio.sleep(0.01)
        download.cancel()
        with pytest.raises(asyncio.CancelledError):
            await download
    assert not list(tmp_path.iterdir())


@opened
async def test_a_full_disk_leaves_nothing_and_is_no_fault_of_the_server(tmp_path: Path) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            super().write(b"some")
            raise OSError(28, "No space left on device")

    file = Full()
    async with serving(answer(b"x" * 1000)) as server:
        with pytest.raises(OSError, match="No space"):
            await outbound.download(f"http://peer.test:{server.port}/", limit=1000, timeout=PATIENCE, into=file)
    assert file.getvalue() == b""


@pytest.mark.parametrize(
    ("disposition", "path", "name"),
    [
        ("", "/a/b.txt", "b.txt"),
        ("", "/a/", None),
        ("", "/..%2F..%2Fetc%2Fpasswd", "passwd"),
        ('attachment; filename="r\\"1.pdf"', "/", 'r"1.pdf'),
        ("attachment; filename=plain.pdf; x=y", "/", "plain.pdf"),
        ('attachment; filename="../../x.pdf"', "/", "x.pdf"),
        ('attachment; filename="C:\\\\x.pdf"', "/", "x.pdf"),
        ("attachment; filename=\"no.pdf\"; filename*=UTF-8''%e2%82%ac%0a.pdf", "/", "€.pdf"),
        ("attachment; filename*=UTF-8''%ff%fe", "/", "\ufffd\ufffd"),
        ("attachment; filename*=latin-1''x", "/y", "y"),
        ('attachment; filename="\xe2\x82\xac.pdf"', "/", "€.pdf"),
        ('attachment; filename="never ends', "/y", "y"),
        ("attachment", "/y", "y"),
    ],
)
def test_names_of_files(disposition: str, path: str, name: str | None) -> None:
    assert client._filename({"content-disposition": disposition}, f"https://peer.test{path}?q=/z") == name


@pytest.mark.parametrize(
    ("given", "media_type"),
    [("text/plain", "text/plain"), ("", None), ("x", None), ("a/b c", None), (" A/B+c ; q=1", "a/b+c")],
)
def test_media_types(given: str, media_type: str | None) -> None:
    assert client._media_type({"content-type": given}) == media_type

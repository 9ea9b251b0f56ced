"""Texts that are sent in a process of their own: what comes back, and that nothing outlives its time."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.receiver import Receiver
from tests.volcanic.channel_servers import Dripper, closed_port
from tests.waiting import PATIENCE
from volcanic.notifications import sending
from volcanic.notifications.sending import channel_send_apart

SECRET = "SECRET-PATH"


def _url(port: int) -> str:
    # A minute for each read, so that it is no time limit of Apprise's that ends it.
    return f"json://127.0.0.1:{port}/{SECRET}?rto=60&cto=60"


async def test_what_went_wrong_comes_back() -> None:
    with Receiver() as receiver, closed_port() as closed:
        port = int(receiver.url.rpartition(":")[2])
        assert await channel_send_apart(_url(port), "títle", "text\ud800", seconds=PATIENCE) == ""
        error = await channel_send_apart(_url(closed), "title", "text", seconds=PATIENCE)
    assert [request.json["title"] for request in receiver.received] == ["títle"]
    assert error == "A Connection error occurred sending JSON notification to 127.0.0.1."
    assert "can't be used" in await channel_send_apart("syslog://", "title", "text", seconds=PATIENCE)


async def test_time_is_over_for_who_drips(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    with Dripper() as dripper:
        on_its_way = asyncio.create_task(channel_send_apart(_url(dripper.port), "title", "text", seconds=1000))
        assert await asyncio.to_thread(dripper.connected.wait, PATIENCE)
        assert not dripper.left.is_set()
        real = loop.time
        monkeypatch.setattr(loop, "time", lambda: real() + 1000)
        assert await asyncio.wait_for(on_its_way, PATIENCE) == "No answer within 1000 seconds."
        assert await asyncio.to_thread(dripper.left.wait, PATIENCE)


async def test_who_stops_waiting_stops_it() -> None:
    with Dripper() as dripper:
        on_its_way = asyncio.create_task(channel_send_apart(_url(dripper.port), "title", "text", seconds=1000))
        assert await asyncio.to_thread(dripper.connected.wait, PATIENCE)
        on_its_way.cancel()
        with pytest.raises(asyncio.CancelledError):
            await on_its_way
        assert await asyncio.to_thread(dripper.left.wait, PATIENCE)


async def test_the_address_is_for_nobody_to_see() -> None:
    with Dripper() as dripper:
        on_its_way = asyncio.create_task(channel_send_apart(_url(dripper.port), "title", "text", seconds=1000))
        assert await asyncio.to_thread(dripper.connected.wait, PATIENCE)
        seen = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes()
                if sending.__name__.encode() in command:
                    seen[process.name] = command + (process / "environ").read_bytes()
            except OSError:  # gone, or another's
                continue
        on_its_way.cancel()
    assert seen
    assert SECRET.encode() not in b"".join(seen.values())


def test_it_ends_when_nobody_is_left_to_end_it() -> None:
    with Dripper() as dripper:
        order = {"url": _url(dripper.port), "title": "title", "text": "text", "seconds": 0.5}
        done = subprocess.run(
            [sys.executable, "-m", sending.__name__], input=json.dumps(order).encode(), capture_output=True
        )
    assert done.returncode == -signal.SIGALRM


async def test_what_breaks_a_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "__name__", "volcanic.no_such_module")
    assert await channel_send_apart("json://192.0.2.1", "t", "x", seconds=PATIENCE) == "Sending failed: exit status 1."
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    assert (
        await channel_send_apart("json://192.0.2.1", "t", "x", seconds=PATIENCE) == "Sending failed: FileNotFoundError."
    )


def test_what_a_plugin_raises_is_told_without_its_text(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def broken(*_args: object) -> str:
        sys.stdout.write("plugins may write")
        raise RuntimeError(SECRET)

    ended: list[int] = []
    monkeypatch.setattr(sending, "channel_send", broken)
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"url": "", "title": "", "text": "", "seconds": 60}'))
    monkeypatch.setattr(signal, "alarm", lambda _seconds: 0)
    monkeypatch.setattr(os, "_exit", ended.append)
    sending.main()
    assert ended == [0]
    assert capfdbinary.readouterr().out == b"Sending failed: RuntimeError."

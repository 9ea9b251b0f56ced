"""Requests through the guard, to real local servers: what is sent, and servers that mean harm or are ill."""

import asyncio
import gzip
import io
import socket
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from tests.volcanic.peers import (
    Handler,
    Names,
    answer,
    drip_body,
    drip_headers,
    endless_body,
    endless_chunks,
    endless_headers,
    get,
    hang_up,
    refused,
    reset,
    serving,
    short_body,
    silence,
    smtp,
)
from tests.waiting import PATIENCE
from volcanic import outbound
from volcanic.outbound import client

pytestmark = pytest.mark.usefixtures("names")
opened = pytest.mark.usefixtures("peer_opened")


@opened
async def test_what_is_sent_and_what_comes_back() -> None:
    async with serving(answer(b"thanks", "X-Two: a", "x-two: b", status="202 Accepted")) as server:
        response = await outbound.request(
            "POST",
            f"http://PEER.test:{server.port}/hook?x=1#part",
            headers={
                "Authorization": "Bearer t",
                "Host": "evil.test",
                "Accept-Encoding": "gzip",
                "Content-Length": "9",
            },
            content=b"{}",
            timeout=PATIENCE,
            max_response_bytes=6,
        )
    assert (response.status, response.body, response.headers["x-two"]) == (202, b"thanks", "a, b")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    line, *headers = head.decode().lower().split("\r\n")
    assert line == "post /hook?x=1 http/1.1"
    assert body == b"{}"
    assert sorted(headers) == [
        "accept-encoding: identity",
        "authorization: bearer t",
        "content-length: 2",
        f"host: peer.test:{server.port}",
        "user-agent: volcanic",
    ]


@opened
async def test_the_cap_is_exact(tmp_path: Path) -> None:
    async with serving(answer(b"thanks")) as server, serving(b"HTTP/1.0 200 OK\r\n\r\nthanks") as unannounced:
        url = f"http://peer.test:{server.port}/"
        assert (await get(url, limit=6)).body == b"thanks"
        await refused(get(url, limit=5), "peer.test sends more than 5 bytes", permanent=False)
        for port in (server.port, unannounced.port):
            attempt = outbound.download(f"http://peer.test:{port}/", limit=5, timeout=PATIENCE, into=tmp_path / "file")
            await refused(attempt, "peer.test sends more than 5 bytes", permanent=True)
    assert not list(tmp_path.iterdir())


@opened
@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\x00", "ä", "☃"])
async def test_a_header_s_value_can_t_add_headers(value: str) -> None:
    async with serving(answer(b"")) as server:
        attempt = outbound.request(
            "POST",
            f"http://peer.test:{server.port}/",
            headers={"X-A2A-Notification-Token": value},
            timeout=PATIENCE,
            max_response_bytes=10,
        )
        await refused(attempt, "method or headers are not valid", permanent=True)
    assert not server.requests


@opened
async def test_connections_are_kept_for_the_next_request(names: Names) -> None:
    async with serving(answer(b"hello")) as server:
        for _ in range(3):
            await get(f"http://peer.test:{server.port}/")
        assert (server.connections, len(server.requests)) == (1, 3)
        await asyncio.gather(*(get(f"http://peer.test:{server.port}/") for _ in range(5)))
    assert server.connections == 5


def test_a_loop_that_ends_takes_its_connections_along(settings: Settings) -> None:
    settings.ALLOWED_PRIVATE_HOSTS = ["peer.test"]

    async def scenario() -> None:
        async with serving(answer(b"hello")) as server:
            await get(f"http://peer.test:{server.port}/")
            assert asyncio.get_running_loop() in client._pools

    for _ in range(2):
        asyncio.run(scenario())
    assert not client._pools


@opened
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_returned_and_not_followed(status: int, tmp_path: Path) -> None:
    async with serving(answer(b"secret")) as target:
        where = f"Location: http://peer.test:{target.port}/admin"
        async with serving(answer(b"", where, status=f"{status} Found")) as server:
            url = f"http://peer.test:{server.port}/"
            response = await get(url)
            assert (response.status, "location" in response.headers) == (status, True)
            attempt = outbound.download(url, limit=10, timeout=PATIENCE, into=tmp_path / "file")
            await refused(attempt, f"answered {status}, and redirects are not followed", permanent=True)
    assert (len(server.requests), target.connections) == (2, 0)
    assert not list(tmp_path.iterdir())


@opened
async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(answer(b"proxy")) as proxy, serving(answer(b"direct")) as server:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert (await get(f"http://peer.test:{server.port}/")).body == b"direct"
    assert proxy.connections == 0


@opened
async def test_compressed_answers_stay_compressed() -> None:
    bomb = gzip.compress(b"\0" * 1_000_000)
    async with serving(answer(bomb, "Content-Encoding: gzip")) as server:
        response = await get(f"http://peer.test:{server.port}/", limit=len(bomb))
    assert response.body == bomb


HARMFUL = [
    (drip_headers, "did not answer within"),
    (drip_body, "did not answer within"),
    (silence, "did not answer within"),
    (endless_body, "sends more than 3000 bytes"),
    (endless_chunks, "sends more than 3000 bytes"),
    (endless_headers, "does not speak HTTP"),
    (short_body, "broke off"),
    (hang_up, "broke off"),
    (reset, "broke"),
    (smtp, "does not speak HTTP"),
]


@opened
@pytest.mark.parametrize(("handler", "text"), HARMFUL)
async def test_harmful_servers(handler: Handler, text: str, tmp_path: Path) -> None:
    timeout = 0.1 if "did not answer" in text else PATIENCE
    async with serving(handler) as server:
        url = f"http://peer.test:{server.port}/"
        await refused(get(url, limit=3000, timeout=timeout), text, permanent=False)
        file = io.BytesIO(b"before")
        file.seek(6)
        for into in (tmp_path / "file", file):
            attempt = outbound.download(url, limit=3000, timeout=timeout, into=into)
            await refused(attempt, text, permanent="more than" in text)
    assert not list(tmp_path.iterdir())
    assert (file.getvalue(), file.tell()) == (b"before", 6)


@opened
async def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        await refused(get(f"http://peer.test:{unused.getsockname()[1]}/"), "peer.test can't be reached", False)


@opened
async def test_a_dead_address_does_not_hide_a_living_one(names: Names) -> None:
    async with serving(answer(b"hello")) as server:
        names.answers["peer.test"] = [["127.0.0.2", "127.0.0.1"]]
        assert (await get(f"http://peer.test:{server.port}/")).body == b"hello"


@opened
async def test_a_hanging_server_does_not_hold_up_others() -> None:
    """Sixty requests hang; the next one, to another server, is answered."""
    async with serving(silence) as hanging, serving(answer(b"hello")) as server:
        waiting = [asyncio.create_task(get(f"http://peer.test:{hanging.port}/")) for _ in range(60)]
        while hanging.connections < 60:
            await asyncio.sleep(0.01)
        assert (await get(f"http://peer.test:{server.port}/", timeout=PATIENCE)).body == b"hello"
        for task in waiting:
            task.cancel()
        assert all(
            isinstance(e, asyncio.CancelledError) for e in await asyncio.gather(*waiting, return_exceptions=True)
        )

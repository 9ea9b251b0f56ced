"""Minimal receiver of webhooks: notes each notification with its time of arrival, and answers 204 at once.

The receiver is a separate program (`python -m bench.receiver PORT`), so that it shares no interpreter with the measured
server. POST takes a notification. GET returns the number of notifications. `GET /arrivals` returns all notifications:
the task, its state, its status' timestamp and the time of arrival.
"""

import asyncio
import json
import sys
import time
from typing import Any, cast

import httptools
import uvloop

HOST = "127.0.0.1"
_NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"

_arrivals: list[tuple[float, bytes]] = []


class Connection(asyncio.Protocol):
    """One connection of a sender, or of the benchmark, which reads the arrivals."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio.Protocol."""
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        """asyncio.Protocol."""
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        """httptools: a request begins."""
        self._url = self._body = b""

    def on_url(self, url: bytes) -> None:
        """httptools: a piece of the path."""
        self._url += url

    def on_body(self, body: bytes) -> None:
        """httptools: a piece of the body."""
        self._body += body

    def on_message_complete(self) -> None:
        """httptools: the request is whole."""
        if self._transport is None:
            return
        if self._parser.get_method() == b"POST":
            _arrivals.append((time.time(), self._body))
            self._transport.write(_NO_CONTENT)
            return
        answer = json.dumps(_read() if self._url == b"/arrivals" else len(_arrivals)).encode()
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer))


def _read() -> list[Any]:
    """Returns the parsed notifications. Parsing at arrival would delay the answers."""
    found = []
    for at, body in _arrivals:
        task = json.loads(body)["task"]
        found.append((task["id"], task["status"]["state"], task["status"]["timestamp"], at))
    return found


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Connection, HOST, port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))

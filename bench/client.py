"""Minimal HTTP/1.1 client, to keep the load generator cheap: one keep-alive connection, one request at a time."""

import asyncio
import time
from dataclasses import dataclass
from typing import cast

import httptools

PATH = "/a2a"


@dataclass(slots=True)
class Answer:
    """A whole response. `first_at` is the time of a stream's first event, or of the body's first piece."""

    status: int
    body: bytes
    first_at: float


class Connection(asyncio.Protocol):
    """One connection to a server on this machine. Created by `open`."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self._transport: asyncio.WriteTransport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: list[bytes] = []
        self._first_at = 0.0
        self._waiter: asyncio.Future[Answer] | None = None

    @classmethod
    async def open(cls, port: int, key: str) -> "Connection":
        """Connects. Raises OSError."""
        head = (
            f"POST {PATH} HTTP/1.1\r\nHost: localhost:{port}\r\nX-API-Key: {key}\r\nA2A-Version: 1.0\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        )
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: cls(head.encode()), "127.0.0.1", port)
        return connection

    async def ask(self, body: bytes) -> Answer:
        """Sends a request and returns its answer. Raises OSError when the connection ends before that."""
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the server closed a keep-alive connection")
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
        return await self._waiter

    def close(self) -> None:
        """Ends the connection."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio.Protocol."""
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        """asyncio.Protocol."""
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio.Protocol."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(ConnectionResetError("the server closed the connection instead of answering"))

    def on_message_begin(self) -> None:
        """httptools: a response begins."""
        self._chunks = []
        self._first_at = 0.0

    def on_body(self, body: bytes) -> None:
        """httptools: a piece of the body. A comment that keeps a stream alive does not count as an event."""
        if not self._first_at and not body.startswith(b":"):
            self._first_at = time.perf_counter()
        self._chunks.append(body)

    def on_message_complete(self) -> None:
        """httptools: the response is whole."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(Answer(self._parser.get_status_code(), b"".join(self._chunks), self._first_at))

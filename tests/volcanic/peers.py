"""Peers for tests of outgoing HTTP requests: a resolver, and servers, most of them faulty."""

import asyncio
import pickle
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tests.waiting import PATIENCE
from volcanic import outbound
from volcanic.outbound import OutboundError

PUBLIC = "93.184.216.34"
Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class Names:
    """A resolver: each name has a list of answers, used in order. The last answer is used for all further requests."""

    def __init__(self) -> None:
        self.answers: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> list[str]:
        """Replaces `volcanic.outbound.backend.resolve`."""
        self.asked.append(host)
        if host not in self.answers:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        answers = self.answers[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Server:
    """A server that records each request, up to the end of headers and body."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.requests: list[bytes] = []
        self.server_names: list[str | None] = []
        self.handlers: set[asyncio.Task[None]] = set()

    def note_server_name(self, _: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
        """Records the server name of a TLS handshake."""
        self.server_names.append(name)


@asynccontextmanager
async def serving(handler: Handler | bytes, context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Runs a server that answers each request with bytes or by a function. A connection may carry several requests."""
    noted = Server()
    if context:
        context.sni_callback = noted.note_server_name

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        noted.connections += 1
        task = asyncio.current_task()
        assert task
        noted.handlers.add(task)
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                for line in request.lower().split(b"\r\n"):
                    if line.startswith(b"content-length:"):
                        request += await reader.readexactly(int(line.partition(b":")[2]))
                noted.requests.append(request)
                if isinstance(handler, bytes):
                    writer.write(handler)
                else:
                    await handler(request, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client or the test has ended
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    noted.port = server.sockets[0].getsockname()[1]
    try:
        yield noted
    finally:
        server.close()
        await server.wait_closed()
        for handler_task in noted.handlers:
            handler_task.cancel()
        await asyncio.gather(*noted.handlers)


async def get(url: str, limit: int = 1000, timeout: float = PATIENCE) -> outbound.Response:
    """Makes a GET request, with limits that suit most tests."""
    return await outbound.request("GET", url, timeout=timeout, max_response_bytes=limit)


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """Returns the bytes of an HTTP answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def refused(attempt: Awaitable[object], text: str, permanent: bool) -> None:
    """Expects an OutboundError with this text and permanence. Checks that the error can be pickled."""
    with pytest.raises(OutboundError, match=text) as caught:
        await attempt
    assert caught.value.permanent is permanent
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.permanent) == (str(caught.value), permanent)


async def drip_headers(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Sends one header without end, a byte at a time."""
    writer.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not writer.is_closing():
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(0.01)


async def drip_body(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Sends the announced body a byte at a time."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(0.01)


async def silence(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Reads the request and sends no answer."""
    while not writer.is_closing():
        await asyncio.sleep(0.01)


async def endless_body(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Sends an answer without end."""
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"a" * 1000)
        await asyncio.sleep(0)


async def endless_chunks(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Sends an answer without end, in small chunks."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"5\r\naaaaa\r\n" * 100)
        await asyncio.sleep(0)


async def endless_headers(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Sends headers without end."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while not writer.is_closing():
        writer.write(b"X-Long: " + b"a" * 1000 + b"\r\n")
        await asyncio.sleep(0)


async def short_body(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Closes the connection before the end of the announced body."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")
    writer.close()


async def hang_up(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Closes the connection without an answer."""
    writer.close()


async def reset(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Resets the connection in the middle of the body."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart")
    await writer.drain()
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()


async def smtp(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Answers in another protocol: SMTP."""
    writer.write(b"220 mail.example ESMTP\r\n\r\n")

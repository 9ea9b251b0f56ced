"""A real HTTP server that speaks OpenAI's chat completions stream, to test the provider path through a socket.

Each request is answered by the next of `server.replies`; `server.requests` holds the bodies that came.
"""

import json
import select
import socket
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One streamed answer: text chunks, then tool calls as (id, name, arguments as JSON text), then the end.

    `hang`: the end never comes, and the server waits until the client disconnects. `drop`: the server cuts the
    connection instead of the end. `error`: an error event ends the stream.
    """

    chunks: tuple[str, ...] = ()
    calls: tuple[tuple[str, str, str], ...] = ()
    finish: str | None = None
    hang: bool = False
    drop: bool = False
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An HTTP error instead of an answer. Its headers tell the SDK not to retry, which keeps tests short."""

    status: int
    message: str
    headers: dict[str, str] = field(default_factory=dict)


class OpenAIServer:
    """The server, as a context manager. `url` is what OPENAI_BASE_URL takes."""

    def __init__(self, *replies: Reply | Refusal) -> None:
        self.replies: deque[Reply | Refusal] = deque(replies)
        self.requests: list[dict[str, Any]] = []
        # `hanging` is set once a client waits for the rest of a hanging answer, and `left` once that client is gone.
        self.hanging = threading.Event()
        self.left = threading.Event()
        self._stopped = threading.Event()
        self._http = _HTTPServer(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def wait_for_client(self, connection: socket.socket) -> None:
        """Waits until the client is gone from `connection`, or the server is stopped.

        A client that leaves without reading what it was sent resets the connection. One that read all of it closes it.
        """
        self.hanging.set()
        while not self._stopped.is_set():
            if select.select([connection], [], [], 0.02)[0] and _is_over(connection):
                self.left.set()
                return

    def next_reply(self, path: str, body: dict[str, Any]) -> Reply | Refusal:
        """Records a request and returns the next reply."""
        self.requests.append(body)
        if path != "/v1/chat/completions":
            return Refusal(status=404, message=f"no such path: {path}")
        return self.replies.popleft() if self.replies else Refusal(status=500, message="no reply left")


def _is_over(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except ConnectionResetError:
        return True


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = False  # so that closing the server waits for the handlers

    def __init__(self, owner: OpenAIServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner


class _Handler(BaseHTTPRequestHandler):
    server: _HTTPServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answers a chat completion."""
        self.close_connection = True
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.server.owner.next_reply(self.path, body)
        if isinstance(reply, Refusal):
            self._refuse(reply)
        else:
            self._stream(reply)

    def _refuse(self, refusal: Refusal) -> None:
        payload = json.dumps({"error": {"message": refusal.message, "type": "test", "code": None}}).encode()
        self.send_response(refusal.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(payload)), "Connection": "close"}
        for name, value in {**headers, "x-should-retry": "false", **refusal.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)

    def _stream(self, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        # Chunked, so that the client can tell a cut connection from the end of the answer.
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in _events(reply):
            self._chunk(f"data: {event}\n\n")
        if reply.hang:
            self.server.owner.wait_for_client(self.connection)
        elif not reply.drop:
            self._chunk("")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keeps quiet."""


def _events(reply: Reply) -> Iterator[str]:
    for text in reply.chunks:
        yield _completion({"content": text})
    for index, (identifier, name, arguments) in enumerate(reply.calls):
        function = {"name": name, "arguments": ""}
        yield _completion(
            {"tool_calls": [{"index": index, "id": identifier, "type": "function", "function": function}]}
        )
        # In two pieces, as providers do.
        half = len(arguments) // 2
        for piece in (arguments[:half], arguments[half:]):
            yield _completion({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if reply.hang or reply.drop:
        return
    if reply.error:
        yield json.dumps({"error": {"message": reply.error, "type": "server_error", "code": None}})
        return
    yield _completion({}, finish=reply.finish or ("tool_calls" if reply.calls else "stop"))
    yield "[DONE]"


def _completion(delta: dict[str, Any], *, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    return json.dumps(
        {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "test", "choices": [choice]}
    )

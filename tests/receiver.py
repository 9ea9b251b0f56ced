"""A caller's webhook receiver: a real HTTP server that records requests and answers as a test tells it."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Received:
    """One received request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Returns the JSON value of the body."""
        return json.loads(self.body)


Answer = Callable[[Received, int], int | None]


def accept(_request: Received, _number: int) -> int:
    """Answers 200 to every request."""
    return 200


class Receiver:
    """Answers each request with the status that `answer(request, number)` gives; None hangs until the end, and a
    redirect leads to its own /elsewhere.

    For None the server sends no answer until it is stopped.

    `received` holds all requests, `accepted` the requests that were answered with a 2xx status.
    """

    def __init__(self, answer: Answer = accept) -> None:
        self.received: list[Received] = []
        self.accepted: list[Received] = []
        self._answer = answer
        self._lock = threading.Lock()
        self._over = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", "0"))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver._take(self, Received(self.path, headers, self.rfile.read(length)))

            def log_message(self, *_args: Any) -> None:
                """Logs nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _take(self, handler: BaseHTTPRequestHandler, request: Received) -> None:
        with self._lock:
            self.received.append(request)
            status = self._answer(request, len(self.received))
            if status is not None and 200 <= status < 300:
                self.accepted.append(request)
        if status is None:
            self._over.wait()
            return
        handler.send_response(status)
        if 300 <= status < 400:
            handler.send_header("location", f"{self.url}/elsewhere")
        handler.send_header("content-length", "0")
        handler.end_headers()

    def states(self, path: str | None = None) -> list[str]:
        """Returns the task states in the accepted requests, in order, without their prefix; of one path or of all."""
        tasks = [request.json.get("task", request.json) for request in self.accepted if path in (None, request.path)]
        return [task["status"]["state"].removeprefix("TASK_STATE_") for task in tasks]

    def __enter__(self) -> "Receiver":
        threading.Thread(target=self._server.serve_forever, args=[0.05], daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

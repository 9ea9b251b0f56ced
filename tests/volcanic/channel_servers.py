"""Real servers for notification channels: a mail server, a closed port, and an HTTP server that never ends its answer.

The HTTP server for deliveries that succeed is in tests.receiver."""

import email
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from email.policy import default
from types import TracebackType
from typing import Any, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session


@contextmanager
def closed_port() -> Iterator[int]:
    """Yields a TCP port that nothing listens on. The port stays bound, so that no other process gets it meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


class Dripper:
    """An HTTP server that sends its answer one byte at a time and never ends it.

    `connected` is set once a client sent a request, and `left` once a client disconnected.
    """

    def __init__(self) -> None:
        self.connected = threading.Event()
        self.left = threading.Event()
        self._over = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._drip, args=[client], daemon=True).start()

    def _drip(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.recv(1)
            self.connected.set()
            client.sendall(b"HTTP/1.1 200 OK\r\nX-Drip: ")
            while not self._over.wait(0.05):
                client.sendall(b"x")
        self.left.set()

    def __enter__(self) -> "Dripper":
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, traceback: TracebackType | None) -> None:
        self._over.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class _BoundController(Controller):
    """An SMTP controller on a port that is bound before the controller starts."""

    def __init__(self, handler: Any) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        super().__init__(handler, hostname="127.0.0.1", port=self._socket.getsockname()[1])

    def _create_server(self) -> Any:
        return self.loop.create_server(self._factory_invoker, sock=self._socket)


class MailServer:
    """An SMTP server on this machine. `received` holds the mails, and `url` is the server's address for Apprise."""

    def __init__(self) -> None:
        self.received: list[EmailMessage] = []
        self._controller = _BoundController(self)

    @property
    def url(self) -> str:
        return f"mailto://127.0.0.1:{self._controller.port}?from=bot@example.com&to=olivia@example.com"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Records a mail."""
        self.received.append(email.message_from_bytes(cast(bytes, envelope.content), policy=default))
        return "250 OK"

    def __enter__(self) -> "MailServer":
        self._controller.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, traceback: TracebackType | None) -> None:
        self._controller.stop()

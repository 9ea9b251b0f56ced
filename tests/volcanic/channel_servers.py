"""A mail server that notifications really go to. For HTTP there is tests.receiver."""

import email
from email.message import EmailMessage
from email.policy import default
from types import TracebackType
from typing import Any, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.product import free_port


class MailServer:
    """An SMTP server on this machine. `received` holds what came, `url` is its address for Apprise."""

    def __init__(self) -> None:
        self.received: list[EmailMessage] = []
        self._controller = Controller(self, hostname="127.0.0.1", port=free_port())

    @property
    def url(self) -> str:
        return f"mailto://127.0.0.1:{self._controller.port}?from=bot@example.com&to=olivia@example.com"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Takes a mail."""
        self.received.append(email.message_from_bytes(cast(bytes, envelope.content), policy=default))
        return "250 OK"

    def __enter__(self) -> "MailServer":
        self._controller.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, traceback: TracebackType | None) -> None:
        self._controller.stop()

"""Messages of A2A 1.0 and 0.3 for snapshots of the wire, and streams read from their first event."""

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tests.product import Product

REST, REST_03 = "/a2a/v1", "/a2a/v0.3/v1"
V1, V03 = {"A2A-Version": "1.0"}, {"A2A-Version": "0.3"}


def v1_message(number: int, text: str = "hello", **members: Any) -> dict[str, Any]:
    """Returns a message in the 1.0 form."""
    return {"role": "ROLE_USER", "messageId": f"m-{number}", "parts": [{"text": text}], **members}


def v03_message(number: int, text: str = "hello", **members: Any) -> dict[str, Any]:
    """Returns a message in the 0.3 form of JSON-RPC."""
    parts = [{"kind": "text", "text": text}]
    return {"kind": "message", "role": "user", "messageId": f"m-{number}", "parts": parts, **members}


def v03_rest_message(number: int, text: str = "hello", **members: Any) -> dict[str, Any]:
    """Returns a message in the 0.3 form of REST."""
    return {"role": "ROLE_USER", "messageId": f"m-{number}", "content": [{"text": text}], **members}


@contextmanager
def worker_held(product: Product) -> Iterator[Callable[[], None]]:
    """Stops the worker until the function that is given is called: a task is seen before it is begun."""

    def go_on() -> None:
        product.signal("worker", signal.SIGCONT)

    product.signal("worker", signal.SIGSTOP)
    try:
        yield go_on
    finally:
        go_on()


def read_from_the_start(product: Product, stream: AbstractContextManager[Iterator[Any]]) -> None:
    """Reads a stream to its end; its first event is from before the worker began."""
    with worker_held(product) as go_on, stream as events:
        next(events)
        go_on()
        list(events)

"""The processes that tests run: one that ends is told at once, with what it logged, and a port is nobody else's."""

import socket
from pathlib import Path

import pytest

from tests.product import Product, free_port


@pytest.mark.parametrize("name", ["web", "worker"])
def test_a_process_that_ends_is_told_with_its_log(tmp_path: Path, name: str) -> None:
    product = Product(tmp_path, BAD_KEYS_PER_MINUTE="no number")
    with pytest.raises(AssertionError, match=f"the {name} process ended") as caught:
        (product.start_web if name == "web" else product.start_worker)()
    product.stop()
    assert "BAD_KEYS_PER_MINUTE" in "".join(caught.value.__notes__)


def test_a_free_port_is_kept_for_a_server() -> None:
    port = free_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with socket.socket() as visitor:
        assert visitor.connect_ex(("127.0.0.1", port)) != 0
    with socket.create_server(("127.0.0.1", port)):  # with SO_REUSEADDR
        socket.create_connection(("127.0.0.1", port)).close()

"""Fixtures of the A2A server's tests: callers' API clients, connections whose wire is recorded."""

from collections.abc import Iterator

import httpx
import pytest
from syrupy.assertion import SnapshotAssertion

from tests.conftest import Keyed
from tests.product import Api, Product
from tests.receiver import Receiver
from tests.recording import Wire, WireFile


@pytest.fixture
def strange(api: Api, product: Product, stranger: Keyed) -> Iterator[Api]:
    """Gives the product's API for the caller `stranger`. The workspace has a folder, which approved runs need."""
    (product.folder / "workspaces" / "main").mkdir(parents=True, exist_ok=True)
    with product.api(stranger.key) as client:
        yield client


@pytest.fixture
def snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Gives the test's file, as JSON."""
    return snapshot.use_extension(WireFile)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Gives a webhook that takes everything."""
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def wire(api: Api, receiver: Receiver) -> Wire:
    """Gives the friend's connection."""
    return Wire(api.http, receiver=receiver.url)


@pytest.fixture
def strange_wire(strange: Api) -> Wire:
    """Gives the stranger's connection."""
    return Wire(strange.http)


@pytest.fixture
def nobodys_wire(api: Api, product: Product) -> Iterator[Wire]:
    """Gives a connection without a key."""
    with httpx.Client(base_url=product.url, timeout=30) as http:
        yield Wire(http)

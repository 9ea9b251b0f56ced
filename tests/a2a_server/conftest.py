"""Fixtures of the A2A server's tests: API clients of callers on the running product."""

from collections.abc import Iterator

import pytest

from tests.conftest import Keyed
from tests.product import Api, Product


@pytest.fixture
def strange(api: Api, product: Product, stranger: Keyed) -> Iterator[Api]:
    """Gives the product's API for the caller `stranger`. The workspace has a folder, which approved runs need."""
    (product.folder / "workspaces" / "main").mkdir(parents=True, exist_ok=True)
    with product.api(stranger.key) as client:
        yield client

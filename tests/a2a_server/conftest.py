"""Who calls the product."""

from collections.abc import Iterator

import pytest

from tests.conftest import Keyed
from tests.product import Api, Product


@pytest.fixture
def strange(api: Api, product: Product, stranger: Keyed) -> Iterator[Api]:
    """The product's API, as the stranger calls it. The workspace has a folder for what is approved."""
    (product.folder / "workspaces" / "main").mkdir(parents=True, exist_ok=True)
    with product.api(stranger.key) as client:
        yield client

"""A pytest plugin: PostgreSQL and Valkey for the whole test run, started once, in a temporary folder.

pyproject.toml names the plugin by `-p`, so that pytest loads the plugin before pytest-django reads the settings. Each
xdist worker gets a database of its own from pytest-django, and a Valkey database and prefix of its own here.
"""

import atexit
import os
from contextlib import ExitStack

import pytest

from volcanic.processes.embedded import temporary

_services = ExitStack()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Starts the services. Adds no option: pytest calls this hook first, and the settings need the services."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        urls = _services.enter_context(temporary())
        atexit.register(_services.close)  # pytest may end without calling pytest_unconfigure
        os.environ["DATABASE_URL"] = urls.database_url
        os.environ["TEST_REDIS_URL"] = urls.redis_url.partition("?")[0]
    number = int((worker or "gw0").removeprefix("gw"))
    os.environ["REDIS_URL"] = f"{os.environ['TEST_REDIS_URL']}?db={number}"
    os.environ["REDIS_PREFIX"] = f"test-{worker or 'main'}"
    os.environ.setdefault("MODEL", "faux")


def pytest_unconfigure() -> None:
    """Stops the services if this process started them."""
    _services.close()

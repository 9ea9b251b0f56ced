"""Fixtures of the browser tests: Chromium at the widths of a desktop and a phone, on the running product."""

import os
import shutil
import signal
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import ConsoleMessage, Error, Page, expect, sync_playwright

from tests.product import Product
from tests.waiting import PATIENCE

WIDTHS = {"desk": 1280, "phone": 390}


@pytest.fixture(scope="session")
def chromium() -> str:
    """Gives the path of the system's Chromium. Without Chromium the tests are skipped, or fail where it is required."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail("REQUIRE_BROWSER is set, and there is no Chromium")
        pytest.skip("no Chromium here")
    return path


@pytest.fixture(params=WIDTHS)
def page(
    request: pytest.FixtureRequest, transactional_db: None, product: Product, owner: User, chromium: str
) -> Iterator[Page]:
    """Gives a page on the product, not logged in. The test fails if the page reports an error while it is open.

    Playwright's event loop runs in this thread until Playwright is closed, and Django's ORM refuses to work beside a
    running loop. So make rows in a fixture that comes before this one, not in the test.
    """
    # The database was emptied after the last test, and the content types have new ids. A web process that wrote the
    # admin's log before has the old ids in its cache, so the process is restarted.
    product.signal("web", signal.SIGKILL)
    product.revive()
    complaints: list[str] = []

    def note_message(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(message.text)

    def note_error(error: Error) -> None:
        complaints.append(str(error))

    with sync_playwright() as playwright:
        # As root, for example in CI, Chromium can't use its sandbox. It opens pages of the product only.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        size = {"width": WIDTHS[request.param], "height": 900}
        page = browser.new_page(base_url=product.url, viewport=size)  # type: ignore[arg-type]
        page.context.set_default_timeout(PATIENCE * 1000)
        expect.set_options(timeout=PATIENCE * 1000)
        page.on("console", note_message)
        page.on("pageerror", note_error)
        yield page
        browser.close()
    assert complaints == []

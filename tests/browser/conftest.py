"""A real browser that sees the page as a reader does, and notes everything it asks for."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium")
SIZES = {"phone": (390, 844), "desk": (1440, 900)}


@dataclass
class Visit:
    """A page that is open, what it asked the network for, and what went wrong."""

    page: Page
    requests: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    if CHROMIUM is None:
        reason = "there is no chromium; apt-get install chromium fonts-wqy-microhei"
        if "CI" in os.environ:
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        # As root, and where /dev/shm is small.
        args = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=args)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open a file as a reader with that screen, language and light would."""
    contexts = []

    def open_page(path: Path, size="desk", locale="en-GB", light="light") -> Visit:
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height}, locale=locale, color_scheme=light
        )
        contexts.append(context)
        visited = Visit(context.new_page())
        page = visited.page
        page.on("request", lambda request: visited.requests.append(request.url))
        page.on("pageerror", lambda error: visited.faults.append(str(error)))
        page.on("console", lambda message: visited.faults.append(message.text))
        page.goto(path.as_uri())
        return visited

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def demo_page(demo_site: Path) -> Path:
    """The page of the shipped demo campaign."""
    return demo_site / "results/demo/site/index.html"

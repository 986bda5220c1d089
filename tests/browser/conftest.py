"""A real browser that records every request and fault of the page it opens."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium")
SIZES = {"phone": (390, 844), "desk": (1440, 900)}
# Readers who among them have every pair of size and language, size and light, language and light.
READERS = [
    ("phone", "en-GB", "light"),
    ("phone", "zh-CN", "dark"),
    ("desk", "en-GB", "dark"),
    ("desk", "zh-CN", "light"),
]


@dataclass
class Visit:
    """An open page, its requests, and its faults."""

    page: Page
    requests: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def assert_sound(self) -> None:
        """Assert that the page fits the screen, runs, can be read by all, and loads nothing."""
        root = "document.documentElement"
        assert self.page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0
        serious = [
            (fault["id"], [node["html"][:200] for node in fault["nodes"][:3]])
            for fault in Axe().run(self.page).response["violations"]
            if fault["impact"] in ("serious", "critical")
        ]
        assert serious == []  # what keeps some readers from a page
        assert self.faults == []
        foreign = [url for url in self.requests if not url.startswith("data:")]
        assert foreign == [self.page.url.partition("#")[0]]


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
    """Open a file as a reader with that screen, language and light would.

    `start` is a script that runs before those of the page.
    """
    contexts = []

    def open_page(
        path: Path, size="desk", locale="en-GB", light="light", start="", **options
    ) -> Visit:
        width, height = SIZES[size]
        screen = {"viewport": {"width": width, "height": height}, "color_scheme": light}
        context = browser.new_context(locale=locale, **screen, **options)
        contexts.append(context)
        context.add_init_script(start)
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
def demo_page(demo: Path) -> Path:
    """The page of the shipped demo."""
    return demo / "results/demo/page/index.html"

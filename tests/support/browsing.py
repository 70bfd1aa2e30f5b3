"""Debian's Chromium, driven by Playwright; a test that needs it is skipped where it is not installed."""

import contextlib
import importlib.util
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
NEEDS_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="needs Chromium and Playwright (apt-get install chromium; make setup)",
)
DESKTOP, PHONE = (1280, 1160), (390, 844)
_OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@dataclass
class Browser:
    chromium: Any
    problems: list[str] = field(default_factory=list)
    """Errors of pages, refused by their policy or thrown by their scripts."""
    requests: list[str] = field(default_factory=list)

    def open(self, url: str, *, size: tuple[int, int] = DESKTOP, dark: bool = False) -> Any:
        width, height = size
        page = self.chromium.new_page(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.problems.append(message.text))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(url)
        return page


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=_OPTIONS)
        try:
            yield Browser(chromium)
        finally:
            chromium.close()

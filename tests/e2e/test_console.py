"""
The console in Chromium while a node is destroyed under a job on a local Slurm cluster, and while the cluster goes.

With CONSOLE_PICTURES=docs/do the pictures of docs/do/console.md are written.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import DESKTOP, NEEDS_CHROMIUM, PHONE, Browser, browser

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.root,
    pytest.mark.slurm,
    pytest.mark.timeout(1200),
    NEEDS_CHROMIUM,
]

JOB = "examples/bytelm/bytelm-resilient.sbatch"
PREPARE = "examples/bytelm/prepare.py"
STEPS, FAULT_AFTER = 600, 30
WAIT_MS = 240_000


@pytest.fixture
def product(tmp_path: Path, new_product: Callable[[Path], Any]) -> Iterator[Any]:
    made = new_product(tmp_path)
    try:
        made.run("up", "local")
        yield made
    finally:
        made.run("down")
    assert not made.home.exists()


class Pictures:
    """Desktop and phone at one moment."""

    def __init__(self, opened: Browser, url: str, folder: Path) -> None:
        self.folder = folder
        self.desktop, self.phone = (opened.open(url, size=size) for size in (DESKTOP, PHONE))

    def take(self, name: str) -> None:
        for device, page in (("desktop", self.desktop), ("phone", self.phone)):
            page.screenshot(path=self.folder / f"console-{name}-{device}.png")


def until(page: Any, true: Callable[[], bool]) -> None:
    """Poll from here: the page's policy forbids the script with which Playwright would poll there."""
    for _ in range(WAIT_MS // 200):
        if true():
            return
        page.wait_for_timeout(200)
    raise AssertionError(page.inner_text("main"))


def text_of(page: Any, selector: str) -> str:
    return str(page.locator(selector).first.inner_text())


def test_a_node_is_destroyed_under_a_job_and_the_cluster_taken_down(product: Any, tmp_path: Path) -> None:
    folder = Path(os.environ.get("CONSOLE_PICTURES", tmp_path))
    console = product.popen("console", "local")
    try:
        url = console.stdout.readline().strip()
        with browser() as opened:
            pictures = Pictures(opened, url, folder)
            page = pictures.desktop
            page.wait_for_selector(".node")
            assert page.locator(".node").count() == 6
            assert "No job has reported a step" in text_of(page, "#job-list")
            product.run("submit", JOB, "--prepare", PREPARE, "--", "--steps", str(STEPS), "--checkpoint-every", "25")

            page.wait_for_selector("#job-list .pill:text-is('running')", timeout=WAIT_MS)
            page.wait_for_selector(".node.r-spare", timeout=WAIT_MS)
            until(page, lambda: page.locator(".node.r-ranks").count() == 4)
            until(page, lambda: int(text_of(page, "#job-facts em").partition(" ")[0]) >= FAULT_AFTER)
            assert page.locator(".node.l-bad").count() == 0
            assert "No incidents" in text_of(page, "#incident-list")
            pictures.take("before")

            victim = page.locator(".node.r-ranks b").nth(2).inner_text()
            product.run("kill-node", victim)
            page.wait_for_selector(".incident", timeout=WAIT_MS)
            assert victim in text_of(page, ".incident .what")
            assert "instance-lost" in text_of(page, ".incident .what")
            page.wait_for_selector(".incident .took:has-text('training again after')", timeout=WAIT_MS)
            assert page.locator(".node.r-ranks").count() == 4, "the spare has the rank"
            pictures.take("during")

            page.wait_for_selector(".incident .took:has-text('full strength after')", timeout=WAIT_MS)
            page.wait_for_selector(".node.r-spare", timeout=WAIT_MS)
            page.wait_for_selector("#job-list .pill:text-is('finished')", timeout=WAIT_MS)
            pictures.take("after")
            page.locator(".incident summary").click()
            assert "fault_injected" in text_of(page, "#event-list")
            assert page.locator(".incident .lines li").count() >= 1

            product.run("console", "local", "--html", str(tmp_path / "job.html"), "--job", page_job(page))
            own = opened.open((tmp_path / "job.html").as_uri())
            assert own.locator(".incident").count() == 1

            down = subprocess.Popen(
                [str(Path(sys.executable).parent / "holdfast"), "down"], env={**os.environ, **product.variables}
            )
            page.wait_for_selector("#banner:has-text('was taken down at')", timeout=WAIT_MS)
            assert down.wait() == 0
            assert opened.problems == []
            assert {one for one in opened.requests if not one.startswith((url, "file:"))} == set()
        out, err = console.communicate(timeout=30)
        assert (console.returncode, err) == (0, "")
        assert "the cluster was taken down: the console has ended" in out
    finally:
        console.kill()
        console.wait()


def page_job(page: Any) -> str:
    return text_of(page, "#job-list tbody td")

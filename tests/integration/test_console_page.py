"""The page of the console in Chromium, with events of a test: texts stay texts, filters, keys, phone and dark mode."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browsing import DESKTOP, NEEDS_CHROMIUM, PHONE, Browser, browser
from console_lab import FakeSource, Served, facts_of, moved, recorded, served

from holdfast.cli.console import written_page
from holdfast.cli.console.model import NodeFacts
from holdfast.cli.views.incidents import Fleet, rows_of
from holdfast_common import Event, kinds

pytestmark = NEEDS_CHROMIUM

S = 1_000_000_000
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def console(repository: Path) -> Iterator[Served]:
    events = moved(recorded(repository, "two-at-once"), end_ns=time.time_ns() - 5 * S)
    names = {event.node: str(event.detail["host"]) for event in events if event.detail.get("host")}
    nodes = [
        NodeFacts(instance_id=one, group="workers", instance_type="ml.g5.8xlarge", host=host, status="Running")
        for one, host in names.items()
    ]
    with served(FakeSource(replace(facts_of(0), nodes=nodes), events)) as found:
        yield found


def ready(opened: Browser, url: str, **how: Any) -> Any:
    opened.problems.clear()
    page = opened.open(url, **how)
    page.wait_for_selector(".incident")
    page.wait_for_selector(".event")
    page.wait_for_selector("#plot-rate canvas")
    return page


def test_no_text_of_others_becomes_an_element(opened: Browser) -> None:
    at_ns = time.time_ns() - 60 * S
    detail = {"incident": HOSTILE, "host": HOSTILE, "nodes": HOSTILE, "step": 1}
    log = [
        Event(
            time_ns=at_ns + at * S, source="job" if kind.startswith("job") else "agent", kind=kind, cluster=HOSTILE,
            job=HOSTILE, node=HOSTILE, fault=HOSTILE, evidence=HOSTILE, action=HOSTILE, detail={**detail, "step": at},
        )
        for at, kind in enumerate((kinds.JOB_STARTED, kinds.JOB_PROGRESS, kinds.VERDICT, kinds.DETECTOR_LOST, HOSTILE))
    ]  # fmt: skip
    node = NodeFacts(
        instance_id=HOSTILE, group=HOSTILE, instance_type=HOSTILE, host=HOSTILE, status=HOSTILE, message=HOSTILE
    )
    facts = replace(facts_of(1), name=HOSTILE, status=HOSTILE, message=HOSTILE, nodes=[node])
    with served(FakeSource(facts, log)) as console:
        page = ready(opened, console.url)
        page.locator(".node").first.click()
        page.locator(".incident summary").first.click()
        assert page.locator("img, iframe, main script").count() == 0
        assert "owned" not in page.evaluate("document.title").replace(HOSTILE, "")
        assert "<img" in page.locator(".event").first.inner_text()
    assert opened.problems == []


@pytest.mark.e2e
def test_filters_and_keys(opened: Browser, console: Served) -> None:
    page = ready(opened, console.url)
    everything = page.locator(".event").count()

    page.keyboard.press("/")
    page.keyboard.type("hung-driver")
    assert 0 < page.locator(".event").count() < everything
    page.keyboard.press("Escape")
    assert page.locator(".event").count() == everything
    page.select_option("#kind", "verdict")
    assert set(page.locator(".event b").all_inner_texts()) == {"verdict"}
    assert "holdfast events --kind verdict" in page.locator("#event-note").inner_text()
    page.select_option("#kind", "")
    page.check("#reports")
    assert page.locator(".event").count() > everything

    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("3")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    assert page.locator(".incident[open]").count() == 1
    assert page.locator(".incident[open] .lines li").count() >= 1
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert opened.problems == []


@pytest.mark.e2e
def test_an_incident_that_is_open_and_a_search_stay_while_events_come(opened: Browser, repository: Path) -> None:
    source = FakeSource(facts_of(5), moved(recorded(repository, "breaker"), end_ns=time.time_ns() - 5 * S))
    with served(source) as console:
        page = ready(opened, console.url)
        page.locator(".incident summary").first.click()
        page.fill("#find", "remedy")
        source.log.append(
            Event(time_ns=time.time_ns(), source="agent", kind=kinds.REMEDY_REFUSED, node="i-77", action="replace")
        )
        page.wait_for_selector(".event:has-text('i-77')")
        source.log.append(
            Event(time_ns=time.time_ns(), source="agent", kind=kinds.VERDICT, node="i-78", fault="gpu-lost")
        )
        page.wait_for_selector(".incident:has-text('i-78')")
        assert page.locator(".incident[open]").count() == 1
        assert page.input_value("#find") == "remedy"


@pytest.mark.e2e
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_nothing_has_to_be_pushed_sideways(opened: Browser, console: Served, size: tuple[int, int]) -> None:
    page = ready(opened, console.url, size=size)
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


@pytest.mark.e2e
def test_dark_mode_has_other_colours(opened: Browser, console: Served) -> None:
    pages = [ready(opened, console.url, dark=dark) for dark in (False, True)]
    day, night = (page.evaluate("getComputedStyle(document.body).backgroundColor") for page in pages)
    assert day != night


@pytest.mark.e2e
def test_a_page_says_that_the_cluster_was_taken_down_or_the_console_ended(opened: Browser, repository: Path) -> None:
    source = FakeSource(facts_of(5), moved(recorded(repository, "breaker"), end_ns=time.time_ns() - 5 * S))
    with served(source) as console:
        page = ready(opened, console.url)
        source.taken_down = True
        page.wait_for_selector("#banner:has-text('The cluster was taken down at')")
    assert page.locator(".node").count() == 6, "what was seen last stays"


@pytest.mark.e2e
def test_a_cluster_without_jobs_incidents_and_events_has_words_for_it(opened: Browser) -> None:
    with served(FakeSource(facts_of(2), note="no log group /x: no component writes events")) as console:
        page = opened.open(console.url)
        page.wait_for_selector(".node")
        texts = [
            page.locator(place).inner_text() for place in ("#job-list", "#incident-list", "#event-note", "#banner")
        ]
    assert "No job has reported a step" in texts[0]
    assert "No incidents" in texts[1]
    assert "No event matches" in texts[2]
    assert "no log group /x" in texts[3]


@pytest.mark.e2e
def test_a_page_that_is_one_file_needs_no_server(opened: Browser, repository: Path, tmp_path: Path) -> None:
    events = recorded(repository, "two-at-once")
    from datetime import UTC, datetime

    path = tmp_path / "page.html"
    path.write_text(
        written_page(events, rows_of(events, Fleet()), made_at=datetime(2026, 11, 23, tzinfo=UTC), version="1")
    )
    opened.requests.clear()
    page = ready(opened, path.as_uri())
    assert page.locator(".incident").count() == 2
    assert not page.locator("#nodes").is_visible()
    assert opened.requests == [path.as_uri()]
    assert opened.problems == []

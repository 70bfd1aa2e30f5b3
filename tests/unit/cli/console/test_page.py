"""A job or incidents as one file: it loads nothing, runs nothing but its own script, whatever the log holds."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from console_lab import recorded
from hypothesis import given
from hypothesis import strategies as st

from holdfast import cli
from holdfast.cli.console import served_files, written_page
from holdfast.cli.terminal import CommandError
from holdfast.cli.views.incidents import Clock, Fleet, Price, rows_of
from holdfast_common import Event, kinds

MADE_AT = datetime(2026, 11, 23, tzinfo=UTC)
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><script>alert(1)</script>",
    "</title></svg><iframe src=//evil.example>",
    "<!-- --><a href='javascript:alert(1)'>x</a>",
    "<!--<script>",
    "&lt;b&gt; &#60;script&#62;",
    "\x1b[31mred\x1b]8;;http://evil.example\x07",
    "\u202egpj.exe",
    "\ud800 alone",
    "]]>\0",
)


class Tags(HTMLParser):
    """Elements that a browser would make, with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


def of(events: Sequence[Event], *, job: str = "") -> str:
    fleet = Fleet(price=Price.of("ec2-on-demand", region=""))
    found = rows_of(events, fleet, stalls=Clock())
    return written_page(events, found, job=job, made_at=MADE_AT, version="1", price_note=fleet.price.note)


def data_of(page: str) -> dict[str, Any]:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    data: dict[str, Any] = json.loads(found)
    return data


def hostile(text: str) -> list[Event]:
    """The same text in everything that a writer chooses."""
    detail = {"incident": text, "host": text, "device": text, "severity": text, "when": text, "way": text}
    more = {"cluster": text, "node": text, "fault": text, "evidence": text, "action": text}
    running, replaced = {"nodes": text, "step": 1}, {"replaces": text}
    return [
        Event(time_ns=5 * 10**9, source="job", kind=kinds.JOB_STARTED, job=text, node=text, detail=running),
        Event(time_ns=10 * 10**9, source="agent", kind=kinds.VERDICT, detail=detail, **more),  # type: ignore[arg-type]
        Event(time_ns=12 * 10**9, source="job", kind=kinds.JOB_PROGRESS, job=text, node=text, detail={"step": 9}),
        Event(time_ns=13 * 10**9, source="control-plane", kind=kinds.NODE_REPLACED, node=f"{text}2", detail=replaced),
    ]  # fmt: skip


def tags(page: str) -> list[tuple[str, tuple[str, ...]]]:
    parser = Tags()
    parser.feed(page)
    parser.close()
    return parser.found


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_log_becomes_an_element_or_an_attribute(text: str) -> None:
    page = of(hostile(text))
    page.encode()

    assert tags(page) == tags(of(hostile("text")))
    assert data_of(page)["incidents"]["rows"], "it is among the data"


@given(st.text(max_size=40) | st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=3).map("".join))
def test_no_text_whatsoever_gets_out_of_its_place(text: str) -> None:
    assert tags(of(hostile(text))) == tags(of(hostile("text")))


def test_the_page_allows_its_own_script_and_style_and_nothing_else(repository: Path) -> None:
    page = of(recorded(repository, "hand-over"))

    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    one, other = (base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    own = f"style-src 'sha256-{one}'; script-src 'sha256-{other}'"
    assert policy == f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"
    assert page.index(policy) < page.index("<style>")
    assert {name for _, names in tags(page) for name in names if name.startswith("on")} == set()
    assert {name for _, names in tags(page) for name in names} & {"src", "href", "style"} == set()


def test_the_served_page_has_no_script_or_handler_of_its_own_and_names_only_its_files() -> None:
    files = served_files()
    page = files[""].content.decode()

    assert {name for _, names in tags(page) for name in names if name.startswith("on")} == set()
    assert re.findall(r"<script[^>]*>([^<]+)", page) == []
    assert set(re.findall(r'(?:src|href)="([^"]+)"', page)) == files.keys() - {""}


def test_no_script_of_ours_makes_html_of_a_text() -> None:
    files = served_files()
    for name in ("console.js", "plots.js"):
        script = files[name].content.decode()
        for way in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "DOMParser",
        ):
            assert way not in script


def test_a_page_of_incidents_has_them_with_their_jobs_and_events(repository: Path) -> None:
    data = data_of(of(recorded(repository, "two-at-once")))

    assert data["meta"]["title"] == "Incidents of local"
    assert [row["evidence_total"] for row in data["incidents"]["rows"]] == [3, 1]
    assert [job["id"] for job in data["jobs"]] == ["7"] == list(data["series"])
    assert {row[5] for row in data["events"]["rows"]} == {"", "7"}


def test_a_page_of_a_job_has_this_job_alone(repository: Path) -> None:
    data = data_of(of(recorded(repository, "rehearsal"), job="2"))

    assert data["meta"]["title"] == "Job 2 of local"
    assert [job["id"] for job in data["jobs"]] == ["2"]
    assert [row["job"] for row in data["incidents"]["rows"]] == ["2"]
    assert {row[5] for row in data["events"]["rows"]} == {"", "2"}
    with pytest.raises(CommandError, match="got --job '9'; allowed: a job with events: 1, 2"):
        of(recorded(repository, "rehearsal"), job="9")


def test_equal_events_make_an_equal_page_and_none_make_one_without_rows(repository: Path) -> None:
    events = recorded(repository, "breaker")

    assert of(events) == of(events)
    assert data_of(of([]))["incidents"] == {"total": 0, "open": 0, "rows": []}


def write(monkeypatch: pytest.MonkeyPatch, log: Path, html: Path) -> int:
    monkeypatch.setattr("sys.argv", ["holdfast", "incidents", "--events", str(log), "--html", str(html)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_a_page_replaces_a_page_and_no_other_file(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = repository / "tests" / "cases" / "events" / "breaker.jsonl"
    html, other = tmp_path / "page.html", tmp_path / "thesis.html"
    other.write_text("<!doctype html>\n<p>years of work")

    assert (write(monkeypatch, log, html), write(monkeypatch, log, html)) == (0, 0)
    assert write(monkeypatch, log, other) == 2
    assert "exists and was not written by holdfast" in " ".join(capsys.readouterr().err.split())
    assert other.read_text() == "<!doctype html>\n<p>years of work"


@pytest.mark.parametrize(
    "words", [["--html", "x.html"], ["--job", "7"], ["--html", "x.html", "--job", "7", "--incident", "i-1"]]
)
def test_a_file_is_of_one_job_or_one_incident(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["holdfast", "console", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "allowed: --html FILE with one of --job and --incident" in " ".join(capsys.readouterr().err.split())

"""The page of incidents: one file that loads and runs nothing, whatever the log holds, and replaces only its like."""

import base64
import hashlib
import itertools
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import cli
from holdfast.cli.views.incidents import Fleet, Price, rows_of
from holdfast.cli.views.incidents.page import page, picture
from holdfast_common import Event, kinds, parse_events

MADE_AT = datetime(2026, 11, 23, tzinfo=UTC)
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><script>alert(1)</script>",
    "</title></svg><iframe src=//evil.example>",
    "<!-- --><a href='javascript:alert(1)'>x</a>",
    "&lt;b&gt; &#60;script&#62;",
    "\x1b[31mred\x1b]8;;http://evil.example\x07",
    "\u202egpj.exe",
    "\ud800 alone",
    "]]>\0",
)


class Tags(HTMLParser):
    """Which elements a browser would make, and with which attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes |= {(tag, name) for name, _ in attrs}


def of(events: Sequence[Event]) -> str:
    fleet = Fleet(price=Price.of("ec2-on-demand", region=""))
    return page(rows_of(events, fleet), events, fleet, made_at=MADE_AT, version="1")


def recorded(repository: Path, name: str) -> list[Event]:
    text = (repository / "tests" / "cases" / "events" / f"{name}.jsonl").read_text()
    return list(parse_events(text.splitlines()).events)


def hostile(text: str) -> list[Event]:
    """The same text in everything that a writer chooses."""
    detail = {"incident": text, "host": text, "device": text, "severity": text, "when": text, "way": text}
    more = {"cluster": text, "node": text, "fault": text, "evidence": text, "action": text}
    running = {"nodes": text, "step": 1}
    return [
        Event(time_ns=5 * 10**9, source="job", kind=kinds.JOB_STARTED, job=text, node=text, detail=running),
        Event(time_ns=10 * 10**9, source="agent", kind=kinds.VERDICT, detail=detail, **more),  # type: ignore[arg-type]
        Event(time_ns=11 * 10**9, source="agent", kind=kinds.REMEDY_REQUESTED, detail=detail, **more),  # type: ignore[arg-type]
        Event(time_ns=12 * 10**9, source="job", kind=kinds.JOB_PROGRESS, job=text, node=text, detail={"step": 9}),
        Event(
            time_ns=13 * 10**9,
            source="control-plane",
            kind=kinds.NODE_REPLACED,
            node=text + "2",
            detail={"replaces": text},
        ),
    ]


def tags(text: str) -> Tags:
    parser = Tags()
    parser.feed(text)
    parser.close()
    return parser


@pytest.fixture
def expected(repository: Path) -> Tags:
    """Elements and attributes of a page of friendly texts."""
    found = Tags()
    for name in ("hand-over", "breaker", "two-at-once"):
        found.feed(of(recorded(repository, name)))
    return found


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_log_becomes_an_element_or_an_attribute(expected: Tags, text: str) -> None:
    made = of(hostile(text))
    made.encode()

    assert tags(made).found <= expected.found
    assert tags(made).attributes <= expected.attributes
    assert not {"script", "img", "iframe", "a", "link", "object", "base", "form"} & tags(made).found


@given(st.text(max_size=40) | st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=3).map("".join))
def test_no_text_whatsoever_gets_out_of_its_place(text: str) -> None:
    made = of(hostile(text))

    allowed = tags(of(hostile("text"))).found
    assert tags(made).found <= allowed | {"circle", "ol", "li", "span"}
    for svg in re.findall(r"<svg.*?</svg>", made, re.DOTALL):
        ElementTree.fromstring(svg)


def test_the_page_forbids_everything_but_its_own_style(repository: Path) -> None:
    made = of(recorded(repository, "hand-over"))

    (style,) = re.findall(r"<style>(.*?)</style>", made, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', made)
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert made.index(policy) < made.index("<style>")
    assert "style=" not in made
    assert not re.search(r"\b(?:src|href)=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", made)


def test_each_incident_has_a_bar_on_the_axis_and_evidence_that_unfolds(repository: Path) -> None:
    made = of(recorded(repository, "two-at-once"))

    overview = made[: made.index("One by one")]
    assert overview.count('<g class="row">') == 2 * 2, "one drawing for a phone, one for the rest"
    assert "steps per second" in overview
    assert re.findall(r"<summary>evidence, (\d+) lines?</summary>", made) == ["3", "1"]
    assert "prefers-color-scheme: dark" in made
    assert "@media print" in made
    assert 'name="viewport"' in made


def test_bars_lie_within_their_drawing_and_follow_each_other(repository: Path) -> None:
    for name in ("hand-over", "boundary", "breaker", "two-at-once", "rehearsal", "withdrawn"):
        for svg in re.findall(r"<svg.*?</svg>", of(recorded(repository, name)), re.DOTALL):
            (width,) = map(int, re.findall(r'viewBox="0 0 (\d+) ', svg))
            for row in re.findall(r'<g class="row">(.*?)</g>', svg):
                bars = re.findall(r'<rect class="bar \w+" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', row)
                places = [(float(x), float(x) + float(wide)) for x, wide in bars]
                assert all(0 <= left < right <= width for left, right in places)
                assert all(one[0] < other[0] for one, other in itertools.pairwise(places))


def test_equal_events_make_an_equal_page_and_none_make_one_that_says_so(repository: Path) -> None:
    events = recorded(repository, "breaker")

    assert of(events) == of(events)
    assert "No incidents." in of([])


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
    assert "exists and was not written by holdfast incidents" in " ".join(capsys.readouterr().err.split())
    assert other.read_text() == "<!doctype html>\n<p>years of work"


def test_the_picture_of_the_docs_is_the_one_of_the_recorded_log(repository: Path) -> None:
    """`holdfast incidents --events tests/cases/events/two-at-once.jsonl --svg docs/concepts/incidents.svg` makes it."""
    events = recorded(repository, "two-at-once")
    made = picture([incident for incident, _ in rows_of(events, Fleet())], events)

    assert (repository / "docs" / "concepts" / "incidents.svg").read_text() == made
    ElementTree.fromstring(made)

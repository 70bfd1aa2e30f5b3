"""Event logs of any size: read in a stream, in order, and a line that is no event is that line alone."""

import io
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.deployed import stored, stream_events
from holdfast.cli.planning import events_of
from holdfast.cli.terminal import CommandError
from holdfast_common import Event, EventError, StoredEvents, in_order, kinds, parse_events, timeline

BEGUN_NS = 1_780_000_000_000_000_000
CASES = sorted((Path(__file__).parents[2] / "cases" / "events").glob("*.jsonl"))


def report(second: float, *, step: int = 1, **fields: Any) -> Event:
    return Event(
        time_ns=BEGUN_NS + round(second * 1e9),
        source="job",
        kind=kinds.JOB_PROGRESS,
        job="7",
        detail={"step": step},
        **fields,
    )


def of_lines(lines: Iterable[bytes]) -> StoredEvents:
    return StoredEvents(io.BytesIO(b"\n".join(lines)))


def lines_of(events: Iterable[Event]) -> list[bytes]:
    return [event.to_json().encode() for event in events]


@pytest.mark.parametrize(
    ("spoiled", "why"),
    [
        (b"\xff", "not UTF-8: byte 0xff at 1"),
        (b'{"version":1,"time_ns":5,"source":"job","kind":"x","evidence":"\xe4"}', "not UTF-8: byte 0xe4 at"),
        (b"\x00\x00\x00", "not JSON"),
        (b'{"version":1,"time_ns":17', "not JSON"),
        (b'{"version":1,"time_ns":5,"source":"job","kind":"x","time_ns":6}', "time_ns occurs twice"),
        (b'{"version":1,"time_ns":5,"source":"job","kind":"x"} {}', "something follows the object"),
        (b'{"version":1,"time_ns":5,"source":"job","kind":"x","detail":{"a":1e400}}', "detail.a must be"),
        (b'{"version":1,"time_ns":5,"source":"job","kind":"x","detail":{"a":' + b"9" * 400 + b"}}", "detail.a must be"),
        (b'{"version":1,"time_ns":5,"source":"job","kind":"x","detail":{"a":NaN}}', "detail.a must be"),
        (b'{"version":1,"time_ns":' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"version":1,"time_ns":' + b"9" * 400 + b',"source":"job","kind":"x"}', "time_ns must be"),
        (b'{"version":' + b"9" * 400 + b',"time_ns":5,"source":"job","kind":"x"}', "event version must be 1"),
        (b"[" * 100_000, "not JSON"),
        (b"3", "an event must be a JSON object"),
    ],
)
@pytest.mark.parametrize("at", [0, 3, 6])
def test_a_line_that_is_no_event_is_one_bad_line_wherever_it_stands(spoiled: bytes, why: str, at: int) -> None:
    good = [report(second) for second in range(6)]
    lines = lines_of(good)
    found = of_lines([*lines[:at], spoiled, *lines[at:]])

    assert list(found) == good
    assert found.problems is not None
    assert found.problems.count == 1
    assert found.problems.first.startswith(f"line {at + 1}: ")
    assert why in found.problems.first


def test_many_bad_lines_are_counted_and_the_first_of_the_file_is_named_whatever_the_order_of_time() -> None:
    good = lines_of(report(second) for second in range(5))
    late = report(99).to_json().encode().replace(b'"detail"', b'"details"')
    found = of_lines([good[4], late, good[3], b"", b"\xfe", *good[:3], b"\xfd"])

    assert [event.time_ns for event in found] == [BEGUN_NS + second * 10**9 for second in range(5)]
    assert found.problems is not None
    assert (found.problems.count, found.problems.first[:8]) == (3, "line 2: ")
    assert of_lines(good).problems is None


def test_a_line_without_an_end_costs_no_more_than_the_longest_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast_common.ordered.LONGEST_LINE", 1000)
    good = lines_of(report(second) for second in range(2))
    found = of_lines([good[0], b"x" * 5_001, good[1], b'{"version":1,"time_ns":5,' + b" " * 3_000])

    assert len(list(found)) == 2
    assert found.problems is not None
    assert found.problems.count == 2
    assert found.problems.first == "line 2: longer than 1000 bytes"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_file_tells_what_its_events_in_memory_tell_also_shuffled_repeated_and_spelled_otherwise(path: Path) -> None:
    events = list(parse_events(path.read_text().splitlines()).events)
    at_one_time = [Event(**{**vars(event), "time_ns": events[3].time_ns}) for event in events[:9]]
    lines = [*lines_of([*events, *events[:20], *at_one_time]), *lines_of(events[5:9])]
    lines = [line.replace(b":", b": ", 1) if number % 3 == 0 else line for number, line in enumerate(lines)]
    random.Random(1).shuffle(lines)
    found = of_lines(lines)

    assert list(found) == list(in_order([*events, *at_one_time]))
    assert list(found) == list(found)
    assert all(one == other for one, other in zip(found, found, strict=True)), "two readers at once"
    assert timeline(found) == timeline([*events, *at_one_time])


def test_memory_does_not_grow_with_the_events() -> None:
    def peak(count: int) -> int:
        file = io.BytesIO(b"\n".join(lines_of(report(second, step=second) for second in range(count))))
        tracemalloc.start()
        (job,) = timeline(StoredEvents(file)).jobs
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert job.steps == count - 1
        return used

    few, many = peak(500), peak(10_500)

    assert (many - few) / 10_000 < 100, "bytes for each event"


def test_a_pipe_is_read_as_a_file_is(tmp_path: Path) -> None:
    good = [report(second) for second in (3, 1, 2)]

    assert list(stored(line + b"\n" for line in lines_of(good))) == sorted(good, key=lambda event: event.time_ns)


def test_a_log_without_any_event_is_refused_with_its_first_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\xff\n")

    with pytest.raises(CommandError, match=r"holds no event.*line 1: not UTF-8"):
        events_of(path)


def test_numbers_that_no_step_can_be_are_none() -> None:
    started = Event(time_ns=1, source="job", job="7", kind=kinds.JOB_STARTED, detail={"step": 0, "nodes": "i-1"})
    odd = [-1e300, 1e300, 1e308, 10**300, -5, True]
    told = [
        Event(time_ns=2 + at, source="job", job="7", kind=kinds.JOB_PROGRESS, detail={"step": step, "loss": 1e308})
        for at, step in enumerate(odd)
    ]

    (job,) = timeline([started, *told]).jobs

    assert (job.steps, job.steps_redone, job.productive_s) == (0, 0, 0.0)


def test_an_event_that_no_reader_could_compute_with_is_not_written() -> None:
    with pytest.raises(EventError, match=r"detail\.a must be"):
        Event(time_ns=1, source="job", kind="x", detail={"a": 10**400})


class Pages:
    """A log group that is read page by page."""

    session: Any = type("Session", (), {"cluster_name": "c"})

    def __init__(self, *pages: list[Event]) -> None:
        self._pages, self.asked = pages, 0

    def ask(self, *_: str, **given: Any) -> dict[str, Any]:
        at = int(given.get("nextToken", 0))
        self.asked += 1
        found = [
            {"message": event.to_json(), "timestamp": event.time_ns // 1_000_000, "logStreamName": "i-1/jobs"}
            for event in self._pages[at]
        ]
        return {"events": found, **({"nextToken": str(at + 1)} if at + 1 < len(self._pages) else {})}


def test_events_of_a_log_group_come_page_by_page_and_in_order_within_a_millisecond() -> None:
    first = [report(1), report(2.0000007)]
    last = [report(2.0000003), report(3)]
    context: Any = Pages(first, last)

    stream = stream_events(context)

    assert next(stream) == first[0]
    assert context.asked == 1, "the next page is not read before it is needed"
    assert list(stream) == [last[0], first[1], last[1]]


@pytest.mark.e2e
def test_a_million_lines_are_read_in_20_s_of_cpu_and_300_mb_by_each_verb(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/events.py"], cwd=repository, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr

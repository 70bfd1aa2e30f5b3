"""Events on their way to CloudWatch: no line lost, none put twice, whatever ends or refuses meanwhile."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import eventually

from holdfast_agent.aws import AwsError
from holdfast_agent.shipping import (
    EventShipper,
    Line,
    Lines,
    LogStream,
    Passage,
    PositionFile,
    next_batch,
    stamped,
)
from holdfast_common import dropped_event

NOW_S = 1_800_000_000.0
NOW_MS = int(NOW_S * 1000)
DAY_MS = 24 * 3_600_000


class Cloud:
    """CloudWatch Logs of one stream, as PutLogEvents is documented; ``mishaps`` come first."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.exists = False
        self.mishaps: list[str] = []
        self.clock_s = NOW_S
        self.shown: int | None = None

    def now_s(self) -> float:
        return self.clock_s

    def call(self, operation: str, **given: Any) -> dict[str, Any]:
        if operation == "GetLogEvents":
            if self.mishaps[:1] == ["away"]:
                raise AwsError("Unreachable", "away")
            if not self.exists:
                raise AwsError("ResourceNotFoundException", "no stream", status=400)
            start = int(given.get("nextToken", "f/0")[2:])
            shown = self.events[: self.shown] if self.shown is not None else self.events
            page = shown[start : start + 7]
            return {"events": page, "nextForwardToken": f"f/{start + len(page)}"}
        if operation == "CreateLogStream":
            self.exists = True
            return {}
        assert operation == "PutLogEvents"
        return self._put(given["logEvents"])

    def _put(self, events: list[dict[str, Any]]) -> dict[str, Any]:
        mishap = self.mishaps.pop(0) if self.mishaps else ""
        if mishap in ("away", "lost request"):
            raise AwsError("Unreachable", mishap)
        if mishap == "throttled":
            raise AwsError("ThrottlingException", "slow down", status=400)
        if not self.exists:
            raise AwsError("ResourceNotFoundException", "no stream", status=400)
        times = [one["timestamp"] for one in events]
        assert times == sorted(times)
        assert times[-1] - times[0] < DAY_MS
        assert len(events) <= 10_000
        assert sum(len(one["message"].encode()) + 26 for one in events) <= 1_048_576
        if any("refuse me" in one["message"] for one in events):
            raise AwsError("InvalidParameterException", "refused", status=400)
        now = self.clock_s * 1000
        old = sum(time < now - 14 * DAY_MS for time in times)
        new = sum(time > now + DAY_MS / 12 for time in times)
        self.events += events[old : len(events) - new]
        if mishap == "lost answer":
            raise AwsError("Unreachable", mishap)
        info = {"tooOldLogEventEndIndex": old} if old else {}
        info |= {"tooNewLogEventStartIndex": len(events) - new} if new else {}
        return {"rejectedLogEventsInfo": info} if info else {}

    @property
    def texts(self) -> list[str]:
        return [one["message"] for one in self.events]


def event(number: int, time_ms: int = NOW_MS) -> str:
    return json.dumps({"time_ns": time_ms * 1_000_000, "number": number})


def write(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.write("".join(line + "\n" for line in lines))


def shipper(cloud: Cloud, folder: Path, **more: Any) -> EventShipper:
    stream = LogStream(api=cloud, group="/holdfast/lab/events", stream="i-1")
    settings = {"look_s": 0.01, "shown_after_s": 0.05, "longest_rest_s": 0.02, **more}
    return EventShipper(
        path=folder / "events.jsonl", stream=stream, state=folder / "shipping.json", stream_name="i-1", **settings
    )


@contextlib.contextmanager
def passage(cloud: Cloud, folder: Path, *, shown_after_s: float = 0.0) -> Iterator[Passage]:
    made = Passage(
        path=folder / "events.jsonl",
        stream=LogStream(api=cloud, group="/holdfast/lab/events", stream="i-1"),
        state=PositionFile(path=folder / "shipping.json", stream="i-1"),
        shown_after_s=shown_after_s,
        wait=threading.Event().wait,
    )
    yield made
    made.close()


class Shipped:
    """A shipper that ships until the file is in the cloud."""

    def __init__(self, cloud: Cloud, folder: Path) -> None:
        self.cloud, self.folder = cloud, folder

    def until(self, count: int) -> None:
        made = shipper(self.cloud, self.folder)
        made.start()
        try:
            eventually(lambda: len(self.cloud.events) >= count)
        finally:
            made.stop()


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


def test_lines_arrive_in_order_and_once(cloud: Cloud, tmp_path: Path) -> None:
    lines = [event(number) for number in range(50)]
    write(tmp_path / "events.jsonl", *lines[:20])
    Shipped(cloud, tmp_path).until(20)
    write(tmp_path / "events.jsonl", *lines[20:])
    Shipped(cloud, tmp_path).until(50)
    assert cloud.texts == lines


@pytest.mark.parametrize("keeps_state", [True, False])
@pytest.mark.parametrize("mishap", ["lost request", "lost answer", "throttled"])
def test_a_request_without_an_answer_neither_loses_nor_repeats(
    cloud: Cloud, tmp_path: Path, mishap: str, keeps_state: bool
) -> None:
    cloud.exists, cloud.mishaps = True, [mishap]
    lines = [event(number) for number in range(30)]
    write(tmp_path / "events.jsonl", *lines[:10])
    Shipped(cloud, tmp_path).until(10)
    assert not cloud.mishaps, "the mishap came"
    if not keeps_state:
        (tmp_path / "shipping.json").unlink()
    write(tmp_path / "events.jsonl", *lines[10:])
    Shipped(cloud, tmp_path).until(30)
    assert cloud.texts == lines


@given(killed=st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), max_size=6))
def test_killed_at_any_request_the_next_one_goes_on(
    tmp_path_factory: pytest.TempPathFactory, killed: list[tuple[int, bool, bool]]
) -> None:
    """After each life: some lines were written, the last request was taken or not, the state's file is there or not."""
    folder, cloud = tmp_path_factory.mktemp("node"), Cloud()
    cloud.exists = True
    written: list[str] = []
    for count, taken, keeps_state in killed:
        lines = [event(len(written) + number) for number in range(count)]
        write(folder / "events.jsonl", *lines)
        written += lines
        cloud.mishaps = ["lost answer" if taken else "lost request"] if count else []
        with passage(cloud, folder) as one, contextlib.suppress(AwsError):
            one.ship()  # and no more of it: killed
        cloud.mishaps = []
        if not keeps_state:
            (folder / "shipping.json").unlink(missing_ok=True)
    with passage(cloud, folder) as last:
        while last.ship():
            pass
    assert cloud.texts == written


def test_what_the_service_does_not_show_yet_is_waited_for(cloud: Cloud, tmp_path: Path) -> None:
    cloud.exists, cloud.mishaps = True, ["lost answer"]
    write(tmp_path / "events.jsonl", event(1), event(2))
    with passage(cloud, tmp_path) as first, pytest.raises(AwsError):
        first.ship()
    cloud.shown = 0
    threading.Timer(0.2, lambda: setattr(cloud, "shown", None)).start()
    with passage(cloud, tmp_path, shown_after_s=5.0) as second:
        second.ship()
    assert cloud.texts == [event(1), event(2)]


def test_a_service_that_is_away_is_waited_for(cloud: Cloud, tmp_path: Path) -> None:
    cloud.exists, cloud.mishaps = True, ["away"] * 1000
    write(tmp_path / "events.jsonl", event(1))
    one = shipper(cloud, tmp_path)
    one.start()
    eventually(lambda: "away" in one.problem)
    write(tmp_path / "events.jsonl", event(2))
    cloud.mishaps = []
    eventually(lambda: cloud.texts == [event(1), event(2)])
    one.stop()
    assert one.problem == ""


def test_a_line_that_is_refused_as_it_is_has_a_stand_in(cloud: Cloud, tmp_path: Path) -> None:
    cloud.exists = True
    write(tmp_path / "events.jsonl", event(1), "refuse me", event(2))
    Shipped(cloud, tmp_path).until(3)
    assert [text[:10] for text in cloud.texts] == [event(1)[:10], "[holdfast]", event(2)[:10]]


def test_lines_whose_time_aws_does_not_take_are_put_under_that_of_now(cloud: Cloud, tmp_path: Path) -> None:
    cloud.exists = True
    write(tmp_path / "events.jsonl", event(1, NOW_MS - 30 * DAY_MS), event(2, NOW_MS + DAY_MS), "no json", event(3))
    Shipped(cloud, tmp_path).until(4)
    assert {one["timestamp"] for one in cloud.events} == {NOW_MS}


def test_events_that_are_rejected_for_the_time_are_put_once_more(cloud: Cloud) -> None:
    """The service's limits are not quite those that we know."""
    cloud.exists = True
    lines = [Line(text=event(1, NOW_MS - 13 * DAY_MS), inode=1, end=9), Line(text=event(2), inode=1, end=18)]
    made = LogStream(api=cloud, group="g", stream="s")
    batches = [next_batch(lines[:1], now_ms=NOW_MS), next_batch(lines[1:], now_ms=NOW_MS)]
    for batch in batches:
        cloud.clock_s = NOW_S + 2 * 24 * 3600
        made.put(batch)
    assert cloud.texts == [event(1, NOW_MS - 13 * DAY_MS), event(2)]


@given(
    times=st.lists(st.integers(NOW_MS - 13 * DAY_MS, NOW_MS + DAY_MS // 24), min_size=1, max_size=40),
    size=st.integers(0, 120_000),
)
def test_a_batch_is_what_one_request_takes(times: list[int], size: int) -> None:
    lines = [Line(text=event(number, time) + " " * size, inode=1, end=number) for number, time in enumerate(times)]
    put: list[str] = []
    while lines:
        batch = next_batch(lines, now_ms=NOW_MS)
        sent = batch.events()
        stamps = [int(str(one["timestamp"])) for one in sent]
        assert stamps == sorted(stamps)
        assert stamps[-1] - stamps[0] < DAY_MS
        assert sum(len(str(one["message"])) + 26 for one in sent) <= 1_048_576
        assert batch.last == lines[len(batch.entries) - 1]
        put += [entry.line.text for entry in batch.entries]
        lines = lines[len(batch.entries) :]
    assert len(put) == len(times)


@given(time_ns=st.one_of(st.none(), st.floats(), st.text(), st.integers()))
def test_any_time_is_one_that_aws_takes(time_ns: object) -> None:
    line = Line(text=json.dumps({"time_ns": time_ns}), inode=1, end=1)
    assert NOW_MS - 14 * DAY_MS < stamped(line, now_ms=NOW_MS).time_ms < NOW_MS + DAY_MS // 12


@given(
    pieces=st.lists(st.binary(max_size=12).map(lambda data: data.replace(b"\r", b"x")), max_size=20),
    ends=st.data(),
)
def test_lines_are_read_whole_however_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], ends: Any
) -> None:
    path = tmp_path_factory.mktemp("lines") / "events.jsonl"
    read: list[Line] = []
    with contextlib.closing(Lines(path=path)) as reader:
        for piece in pieces:
            with path.open("ab") as file:
                file.write(piece)
            if ends.draw(st.booleans()):
                read += reader.read()
        read += reader.read()
    whole = b"".join(pieces)
    wanted = [line.decode("utf-8", "replace") for line in whole.split(b"\n")[:-1]]
    assert [line.text for line in read] == [text for text in wanted if text.strip()]
    for line in read:
        with contextlib.closing(Lines(path=path, inode=line.inode, offset=line.end)) as again:
            assert [one.text for one in again.read()] == [one.text for one in read[read.index(line) + 1 :]]


def test_a_file_that_is_renamed_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, "1", "2")
    reader = Lines(path=path)
    first = reader.read()
    write(path, "3")
    path.rename(tmp_path / "events.jsonl.1")
    write(path, "4")
    assert [line.text for line in (*reader.read(), *reader.read())] == ["3", "4"]
    reader.close()
    after = Lines(path=path, inode=first[-1].inode, offset=first[-1].end)
    assert [line.text for line in (*after.read(), *after.read())] == ["3", "4"]
    after.close()


def test_a_file_that_became_shorter_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, "one long line", "two")
    reader = Lines(path=path)
    assert len(reader.read()) == 2
    path.write_text("new\n")
    assert [line.text for line in reader.read()] == ["new"]
    reader.close()


def test_a_line_without_an_end_takes_bounded_memory_and_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"x" * 3_000_000 + b"\nnext\n")
    reader, read = Lines(path=path), []
    for _ in range(20):
        read += reader.read()
    reader.close()
    assert [len(line.text) for line in read] == [200_000, 4]


def test_a_state_of_another_node_or_half_of_one_is_none(cloud: Cloud, tmp_path: Path) -> None:
    for content in ('{"stream": "i-2", "inode": 1, "offset": 5, "lines": 1, "intended": 1}', '{"stream": "i-1"', "[]"):
        (tmp_path / "shipping.json").write_text(content)
        with passage(cloud, tmp_path) as one:
            assert one.shipped == 0


def test_two_shippers_of_one_node_do_not_both_ship(cloud: Cloud, tmp_path: Path) -> None:
    cloud.exists = True
    write(tmp_path / "events.jsonl", event(1))
    first, second = shipper(cloud, tmp_path), shipper(cloud, tmp_path)
    first.start()
    eventually(lambda: len(cloud.events) == 1)
    second.start()
    eventually(lambda: "another agent" in second.problem)
    write(tmp_path / "events.jsonl", event(2))
    eventually(lambda: len(cloud.events) == 2)
    first.stop()
    second.stop()
    assert cloud.texts == [event(1), event(2)]


def test_the_log_of_a_job_that_writes_without_end_is_shipped_a_request_at_a_time(tmp_path: Path) -> None:
    cloud = Cloud()
    write(tmp_path / "events.jsonl", *("x" * 1_000 for _ in range(2_000)))
    made = shipper(cloud, tmp_path, pause_s=60.0)
    made.start()
    assert eventually(lambda: cloud.events, within_s=10.0)
    time.sleep(0.2)
    assert len("".join(event["message"] for event in cloud.events)) <= 256 << 10
    made.stop()


def test_events_that_the_stream_has_dropped_are_counted_as_shipped(tmp_path: Path) -> None:
    cloud = Cloud()
    cloud.exists, cloud.events = True, [{"timestamp": NOW_MS, "message": dropped_event(2)}]
    write(tmp_path / "events.jsonl", "one", "two", "three")
    with passage(cloud, tmp_path) as made:
        while made.ship():
            continue
    assert [event["message"] for event in cloud.events[1:]] == ["three"]


def test_a_shipper_knows_how_far_the_clock_of_aws_is_from_its_own(tmp_path: Path) -> None:
    cloud = Cloud()
    cloud.clock_s = time.time() + 3600.0
    assert shipper(cloud, tmp_path).skew_s == pytest.approx(3600.0, abs=30.0)

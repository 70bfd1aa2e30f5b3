"""Events: what is written is read back, what is no event is refused, and writers do not disturb each other."""

import dataclasses
import json
import multiprocessing
import os
import re
import time
from pathlib import Path

import pytest

import page_tables
from holdfast_common import SOURCES, Event, EventError, EventLog, events_log_group, kinds, parse_events


def an_event(**changes: object) -> Event:
    event = Event(
        time_ns=1_795_000_000_123_456_789,
        source="control-plane",
        cluster="local",
        node="i-0123456789abcdef0",
        job="7",
        kind=kinds.NODE_LOST,
        fault="instance-lost",
        evidence="init process 4711 is gone",
        action="replace",
        duration_s=0.25,
        detail={"address": "10.1.0.12", "exit_status": -9, "share": 0.5, "spare": False},
    )
    return dataclasses.replace(event, **changes)  # type: ignore[arg-type]


def test_an_event_survives_being_written_and_read() -> None:
    line = an_event().to_json()
    assert "\n" not in line
    assert Event.from_json(line) == an_event()


def test_a_line_end_inside_evidence_stays_inside_its_line() -> None:
    event = an_event(evidence="first\nsecond")
    assert "\n" not in event.to_json()
    assert Event.from_json(event.to_json()).evidence == "first\nsecond"


def test_a_kind_nobody_has_heard_of_is_kept() -> None:
    assert Event.from_json(an_event(kind="gpu_remapped").to_json()).kind == "gpu_remapped"


def test_rejects_another_schema_version_and_says_which_one_it_reads() -> None:
    line = an_event().to_json().replace('"version":1', '"version":2')
    with pytest.raises(EventError, match="event version must be 1, got 2; read it with the holdfast_common"):
        Event.from_json(line)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "planner"}, "source must be one of control-plane, lifecycle, job, agent, cli, got 'planner'"),
        ({"time_ns": "now"}, "time_ns must be UTC nanoseconds"),
        ({"time_ns": -1}, "time_ns must be UTC nanoseconds"),
        ({"time_ns": True}, "time_ns must be UTC nanoseconds"),
        ({"node": 4}, "node must be a string, got 4"),
        ({"kind": ""}, "kind must not be empty"),
        ({"duration_s": "long"}, "duration_s must be a finite number"),
        ({"duration_s": 1e200}, "of less than 292 years"),
        ({"duration_s": -1e10}, "of less than 292 years"),
        ({"detail": []}, "detail must be an object"),
        ({"detail": {"loss": None}}, "detail.loss must be a string, a finite number or a boolean, got None"),
        ({"colour": "red"}, "unknown \\['colour'\\]"),
    ],
)
def test_rejects_a_field_that_is_not_of_the_schema(changes: dict[str, object], message: str) -> None:
    values = json.loads(an_event().to_json()) | changes
    with pytest.raises(EventError, match=message):
        Event.from_json(json.dumps(values))


@pytest.mark.parametrize("line", ["", "{", "[1]", "null", '{"version":1}'])
def test_rejects_a_line_that_is_no_event(line: str) -> None:
    with pytest.raises(EventError):
        Event.from_json(line)


def test_rejects_a_loss_that_is_not_a_number() -> None:
    with pytest.raises(EventError, match=r"detail\.loss must be"):
        an_event(detail={"loss": float("nan")})


def test_lines_that_are_no_events_are_set_aside_and_named() -> None:
    good = an_event().to_json()
    parsed = parse_events([good, "", good[:40], good])
    assert parsed.events == (an_event(), an_event())
    assert len(parsed.problems) == 1
    assert parsed.problems[0].startswith("line 3: not JSON")


def test_a_log_adds_who_where_and_when(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path=path, source="job", cluster="local", node="i-1", job="7")
    before = time.time_ns()
    log.write(kind=kinds.JOB_PROGRESS, detail={"step": 5, "loss": 4.5})
    log.write(kind=kinds.FAULT_INJECTED, node="i-2", fault="instance-lost")
    first, second = (Event.from_json(line) for line in path.read_text().splitlines())
    assert before <= first.time_ns <= second.time_ns <= time.time_ns()
    assert (first.source, first.cluster, first.node, first.job) == ("job", "local", "i-1", "7")
    assert first.detail == {"step": 5, "loss": 4.5}
    assert (second.node, second.fault) == ("i-2", "instance-lost")


def test_the_job_environment_names_the_log(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    environment = {"HOLDFAST_EVENTS": str(path), "HOLDFAST_CLUSTER": "c", "HOLDFAST_INSTANCE_ID": "i-9"}
    EventLog.from_environment(source="job", environment=environment | {"SLURM_JOB_ID": "3"}).write(kind="x")
    event = Event.from_json(path.read_text())
    assert (event.cluster, event.node, event.job) == ("c", "i-9", "3")


def test_outside_a_cluster_events_go_nowhere() -> None:
    log = EventLog.from_environment(source="job", environment={})
    log.write(kind=kinds.JOB_STARTED)
    assert log.path is None


def test_fails_when_the_event_cannot_be_kept(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        EventLog(path=tmp_path / "missing" / "events.jsonl", source="job").write(kind=kinds.JOB_STARTED)


def _write_many(path: Path, writer: int) -> None:
    log = EventLog(path=path, source="job", node=f"i-{writer}")
    for number in range(200):
        log.write(kind=kinds.JOB_PROGRESS, evidence="x" * (number * 40), detail={"step": number})


def test_lines_of_concurrent_writers_never_mix(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(path, writer)) for writer in range(4)]
    for process in writers:
        process.start()
    for process in writers:
        process.join(60)
        assert process.exitcode == 0
    parsed = parse_events(path.read_text().splitlines())
    assert parsed.problems == ()
    for writer in range(4):
        own = [event.detail["step"] for event in parsed.events if event.node == f"i-{writer}"]
        assert own == list(range(200))


def test_every_kind_is_named_as_its_constant_and_says_who_writes_it() -> None:
    constants = {name: value for name, value in vars(kinds).items() if name.isupper()}
    rows = list(page_tables.kind_rows())
    assert [row[0] for row in rows] == list(constants.values())
    assert {row[1] for row in rows} == set(SOURCES)
    assert all(name.lower() == value for name, value in constants.items())


WRITERS = {
    "control-plane": ("holdfast/localcloud/hyperpod",),
    "lifecycle": ("lifecycle",),
    "job": ("containers/training", "examples"),
    "agent": ("containers/health-agent",),
    "cli": ("holdfast/cli",),
}


def test_every_kind_is_written_by_its_source(repository: Path) -> None:
    texts = {
        source: "".join(path.read_text() for folder in folders for path in (repository / folder).rglob("*.py"))
        for source, folders in WRITERS.items()
    }
    missing = [
        f"{kind} by {source}"
        for kind, source, _ in page_tables.kind_rows()
        if not re.search(rf"\bkinds\.{kind.upper()}\b", texts[source])
    ]
    assert missing == []


def test_whoever_writes_an_event_takes_its_kind_from_the_list(repository: Path) -> None:
    folders = {folder for folders in WRITERS.values() for folder in folders}
    for path in (path for folder in folders for path in (repository / folder).rglob("*.py")):
        literal = re.search(r"""(\.emit\(|\bkind=|\.write\(kind=)\s*["'](\w+_\w+)["']""", path.read_text())
        assert literal is None, f"{path}: {literal}"


def test_the_log_group_is_named_after_the_cluster() -> None:
    assert events_log_group("local") == "/holdfast/local/events"


def test_a_log_of_another_user_in_a_sticky_directory_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tmp_path.chmod(0o1777)
    path.touch()
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    EventLog(path=path, source="lifecycle").write(kind=kinds.LIFECYCLE_STARTED)
    assert len(path.read_text().splitlines()) == 1


@pytest.mark.parametrize("line", ["[" * 100_000, '{"version":1,"time_ns":Infinity,"source":"job","kind":"x"}'])
def test_a_line_that_is_made_to_end_its_reader_is_set_aside(line: str) -> None:
    parsed = parse_events([line])
    assert (len(parsed.events), len(parsed.problems)) == (0, 1)

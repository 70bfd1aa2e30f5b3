"""An event's source is stamped by what collects it: a job's log holds a job's events, whatever its lines say."""

import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import eventually

from holdfast.localcloud.hyperpod.logs import LogShipper, Tailer
from holdfast.localcloud.hyperpod.model import Cluster
from holdfast_agent.shipping import EventShipper, LogStream
from holdfast_common import Event, EventError, EventLog, is_of_stream, kinds, log_of_jobs, of_job, stream_of_jobs

NOW_NS = 1_795_000_000_000_000_000
CLUSTER = Cluster(arn="arn:aws:sagemaker:us-west-2:123456789012:cluster/abc", name="dev", status="InService")
NODE = "i-0000000000000000a"


def written(**fields: Any) -> str:
    return json.dumps({"version": 1, "time_ns": NOW_NS, "source": "agent", "kind": kinds.VERDICT, **fields})


def collected(line: str) -> str:
    return of_job(line, cluster="dev", node=NODE, now_ns=NOW_NS)


@pytest.mark.parametrize("node", [NODE, "i-0000000000000000b", "i-of-no-cluster", ""])
@pytest.mark.parametrize("source", ["agent", "control-plane", "cli", "lifecycle", "job"])
def test_what_a_job_writes_is_a_jobs_of_its_own_node_and_cluster(source: str, node: str) -> None:
    event = Event.from_json(collected(written(source=source, node=node, cluster="other", fault="gpu-lost")))

    assert (event.source, event.node, event.cluster, event.kind) == ("job", NODE, "dev", kinds.VERDICT)


def test_a_field_that_is_given_twice_is_there_once() -> None:
    line = written().replace('"source": "agent"', '"source": "job", "source": "agent"')

    assert collected(line).count('"source"') == 1
    assert Event.from_json(collected(line)).source == "job"


def test_an_event_of_the_future_is_dated_when_it_was_collected() -> None:
    late, soon = NOW_NS + 10**16, NOW_NS + 10**9

    assert Event.from_json(collected(written(time_ns=late))).time_ns == NOW_NS
    assert Event.from_json(collected(written(time_ns=soon))).time_ns == soon


LINES = st.one_of(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ).map(json.dumps),
    st.fixed_dictionaries({"duration_s": st.integers() | st.floats() | st.just(10**400), "node": st.text()}).map(
        lambda fields: written(**fields)
    ),
)


@given(LINES)
def test_no_line_comes_out_as_json_of_anything_but_a_job(line: str) -> None:
    shipped = collected(line)

    try:
        found = json.loads(shipped)
    except ValueError:
        return  # no filter of CloudWatch Logs matches what is no JSON
    assert (found["source"], found["node"]) == ("job", NODE)


def test_a_number_that_no_float_holds_is_no_event_and_no_crash() -> None:
    with pytest.raises(EventError, match="duration_s must be a finite number"):
        Event.from_json(written(duration_s=10**400))


@pytest.mark.parametrize(
    ("stream", "source", "belongs"),
    [
        (NODE, "agent", True),
        (NODE, "lifecycle", True),
        (NODE, "job", True),
        (NODE, "control-plane", False),
        (NODE, "cli", False),
        (f"{NODE}/jobs", "job", True),
        (f"{NODE}/jobs", "agent", False),
        ("control-plane", "control-plane", True),
        ("control-plane", "agent", False),
        ("cli", "cli", True),
        ("cli", "control-plane", False),
    ],
)
def test_a_stream_holds_the_events_of_its_writers_alone(stream: str, source: str, belongs: bool) -> None:
    assert is_of_stream(Event.from_json(written(source=source)), stream) is belongs


def test_logs_that_are_made_are_everybodys_for_jobs_and_nobodys_for_others(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        for source in ("job", "agent"):
            EventLog(path=tmp_path / source, source=source).write(kind=kinds.JOB_PROGRESS)
    finally:
        os.umask(before)

    assert [stat.S_IMODE((tmp_path / source).stat().st_mode) for source in ("job", "agent")] == [0o666, 0o640]


class Streams:
    """CloudWatch Logs by stream, for boto3's client and for the agent's."""

    def __init__(self) -> None:
        self.events: dict[str, list[str]] = {}
        self.lock = threading.Lock()

    def put(self, stream: str, events: list[dict[str, Any]]) -> None:
        with self.lock:
            self.events.setdefault(stream, []).extend(event["message"] for event in events)

    def create_log_stream(self, **_: str) -> None:
        """There is one."""

    def put_log_events(self, *, logStreamName: str, logEvents: list[dict[str, Any]], **_: str) -> None:  # noqa: N803
        self.put(logStreamName, logEvents)

    def get_log_events(self, *, logStreamName: str, **_: Any) -> dict[str, Any]:  # noqa: N803
        with self.lock:
            found = self.events.get(logStreamName, [])
            return {"events": [{"message": text} for text in found], "nextForwardToken": ""}

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        if operation == "PutLogEvents":
            self.put(parameters["logStreamName"], parameters["logEvents"])
            return {}
        return self.get_log_events(**parameters) if operation == "GetLogEvents" else {}

    def now_s(self) -> float:
        return NOW_NS / 1e9


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A node's folder of logs: the agent's, and that of jobs."""
    log_of_jobs(tmp_path / "events.jsonl").parent.mkdir()
    (tmp_path / "events.jsonl").write_text(written(node=NODE) + "\n")
    log_of_jobs(tmp_path / "events.jsonl").write_text(written(node="i-other") + "\n" + "no event\n")
    return tmp_path / "events.jsonl"


@pytest.fixture
def from_outside(logs: Path) -> Iterator[Streams]:
    streams = Streams()
    shipper = LogShipper(logs=streams)
    tailer = Tailer(shipper=shipper)
    shipper.start()
    tailer.start()
    tailer.follow(
        instance_id=NODE,
        cluster=CLUSTER,
        group="g",
        events=logs,  # type: ignore[arg-type]  # a Path has what is needed
        job_events=log_of_jobs(logs),  # type: ignore[arg-type]
        provisioning_log=logs.parent / "none",  # type: ignore[arg-type]
    )
    yield streams
    tailer.stop()
    shipper.stop()


def check_streams(streams: Streams) -> None:
    eventually(lambda: len(streams.events.get(stream_of_jobs(NODE), [])) == 2 and streams.events.get(NODE))
    (own,) = streams.events[NODE]
    forged, other = streams.events[stream_of_jobs(NODE)]
    assert Event.from_json(own).source == "agent"
    assert (Event.from_json(forged).source, Event.from_json(forged).node) == ("job", NODE)
    assert other.endswith("no event")
    with pytest.raises(EventError):
        Event.from_json(other)


def test_the_control_plane_puts_what_a_job_forged_as_the_jobs(from_outside: Streams) -> None:
    check_streams(from_outside)


def test_the_agent_puts_what_a_job_forged_as_the_jobs(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast_agent import aws
    from holdfast_agent.configuration import Configuration
    from holdfast_agent.service import shippers

    streams = Streams()
    monkeypatch.setattr("holdfast_agent.service.shipping.Api", lambda **_: streams)
    monkeypatch.setattr(aws.Settings, "read", classmethod(lambda _: None))
    configuration = Configuration(
        cluster_name="dev", node_instance_id=NODE, events_path=str(logs), state_path=str(logs.parent / "state/one.json")
    )
    working = shippers(configuration)
    for one in working:
        one.start()
    try:
        check_streams(streams)
        assert [one.problem for one in working] == ["", ""]
    finally:
        for one in working:
            one.stop()


@pytest.mark.parametrize("trap", ["link", "pipe", "folder"])
def test_what_a_pod_puts_in_place_of_the_log_of_jobs_is_not_read(tmp_path: Path, trap: str) -> None:
    secret, log = tmp_path / "shadow", tmp_path / "events.jsonl"
    secret.write_text("root:secret\n")
    if trap == "link":
        log.symlink_to(secret)
    elif trap == "pipe":
        os.mkfifo(log)
    else:
        log.mkdir()
    streams = Streams()
    stream = LogStream(api=streams, group="g", stream=NODE)
    shipper = EventShipper(
        path=log, stream=stream, state=tmp_path / "state.json", stream_name=NODE, look_s=0.01, shown_after_s=0.0,
        turns=tmp_path / "none",
    )  # fmt: skip
    shipper.start()
    threading.Event().wait(0.2)
    shipper.stop(timeout_s=2.0)

    assert streams.events == {}
    log.unlink() if trap != "folder" else log.rmdir()
    log.write_text("one line\n")
    again = EventShipper(
        path=log, stream=stream, state=tmp_path / "state.json", stream_name=NODE, look_s=0.01, shown_after_s=0.0,
        turns=tmp_path / "none",
    )  # fmt: skip
    again.start()
    eventually(lambda: streams.events.get(NODE) == ["one line"])
    again.stop()

"""A node's events are shipped by its agent or from outside, and never by both: each line becomes one event."""

import fcntl
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from waiting import eventually

from holdfast.localcloud.hyperpod.logs import LogShipper, Tailer
from holdfast.localcloud.hyperpod.model import Cluster
from holdfast_agent.shipping import EventShipper, LogStream

CLUSTER = Cluster(arn="arn:aws:sagemaker:us-west-2:123456789012:cluster/abc", name="dev", status="InService")
NODE = "i-1"


class Logs:
    """One stream of CloudWatch Logs, for boto3's client and for the agent's."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.lock = threading.Lock()
        self.refuses: Callable[[str], bool] = lambda _: False

    def put(self, events: list[dict[str, Any]]) -> None:
        with self.lock:
            self.events += [event["message"] for event in events]

    # --- boto3's words

    def create_log_stream(self, **_: str) -> None:
        """There is one."""

    def put_log_events(self, *, logEvents: list[dict[str, Any]], **_: str) -> None:  # noqa: N803
        if any(self.refuses(event["message"]) for event in logEvents):
            raise ClientError({"Error": {"Code": "InvalidParameterException", "Message": "no"}}, "PutLogEvents")
        self.put(logEvents)

    def get_log_events(self, **_: Any) -> dict[str, Any]:
        with self.lock:
            return {"events": [{"message": text} for text in self.events], "nextForwardToken": ""}

    # --- the agent's

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        if operation == "PutLogEvents":
            self.put(parameters["logEvents"])
            return {}
        return self.get_log_events() if operation == "GetLogEvents" else {}

    def now_s(self) -> float:
        return 1.8e9


class NodeLock:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def open(self) -> int:
        return os.open(self.path, os.O_RDONLY)

    def taken(self) -> bool:
        file = self.open()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(file)
        return False


class Rig:
    def __init__(self, folder: Path) -> None:
        self.file, self.folder, self.logs = folder / "events.jsonl", folder, Logs()
        self.lock = NodeLock(folder / "shipping.lock")
        self.shipper = LogShipper(logs=self.logs)
        self.tailer = Tailer(shipper=self.shipper)
        self.written = 0

    def start(self) -> None:
        self.shipper.start()
        self.tailer.start()
        self.follow()

    def follow(self) -> None:
        self.tailer.follow(
            instance_id=NODE,
            cluster=CLUSTER,
            group="g",
            events=self.file,  # type: ignore[arg-type]  # a Path has what is needed
            job_events=self.folder / "none",  # type: ignore[arg-type]
            provisioning_log=self.folder / "none",  # type: ignore[arg-type]
            lock=self.lock,
        )

    def agent(self) -> EventShipper:
        stream = LogStream(api=self.logs, group="g", stream=NODE)
        made = EventShipper(
            path=self.file, stream=stream, state=self.folder / "shipped.json", stream_name=NODE, look_s=0.02,
            shown_after_s=0.1, turns=self.lock.path,
        )  # fmt: skip
        made.start()
        return made

    def write(self, count: int) -> None:
        with self.file.open("a") as file:
            for _ in range(count):
                self.written += 1
                file.write(json.dumps({"number": self.written}) + "\n")

    def shipped(self) -> list[int]:
        return [json.loads(text)["number"] for text in list(self.logs.events)]

    def all_once(self) -> bool:
        """Nothing twice at any time; whether all is there."""
        found = Counter(self.shipped())
        assert max(found.values(), default=1) == 1, [number for number, times in found.items() if times > 1]
        return len(found) == self.written

    def stop(self) -> None:
        self.tailer.stop()
        self.shipper.stop()


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr("holdfast.localcloud.hyperpod.logs.turns.AGENT_RESTARTS_S", 0.5)
    made = Rig(tmp_path)
    made.start()
    yield made
    made.stop()


def test_without_an_agent_all_is_shipped_from_outside(rig: Rig) -> None:
    rig.write(50)
    eventually(rig.all_once)
    rig.write(50)
    eventually(rig.all_once)
    eventually(lambda: not rig.lock.taken(), "an agent that starts now")


def test_an_agent_that_begins_while_lines_are_on_their_way_repeats_none(rig: Rig) -> None:
    for _ in range(10):
        rig.write(20)
        agent = rig.agent()
        rig.write(20)
        eventually(rig.lock.taken)
        rig.write(20)
        agent.stop()
    eventually(rig.all_once)
    assert rig.shipped() == sorted(rig.shipped())


def test_the_agent_keeps_its_turn_and_what_it_leaves_is_taken_after_a_while(rig: Rig) -> None:
    rig.write(10)
    eventually(rig.all_once)
    agent = rig.agent()
    eventually(lambda: agent.numbers()["events_shipped_total"] == 10)
    rig.write(10)
    eventually(rig.all_once)
    assert agent.numbers()["events_shipped_total"] == 20
    agent.stop()
    rig.write(10)
    eventually(rig.all_once)


def test_what_a_dead_node_left_is_shipped_at_once_and_nothing_of_it_twice(rig: Rig) -> None:
    agent = rig.agent()
    eventually(rig.lock.taken)
    rig.write(30)
    eventually(rig.all_once)
    agent.stop()
    rig.write(3)
    with rig.file.open("a") as file:
        file.write('{"torn": ')
    rig.lock.path.unlink()
    rig.tailer.finish(instance_id=NODE)
    eventually(rig.all_once)


def test_a_long_file_of_an_agent_that_is_gone_is_shipped_to_its_end(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.localcloud.hyperpod.logs.events.CHUNK_BYTES", 64)
    agent = rig.agent()
    eventually(rig.lock.taken)
    rig.write(16)  # a chunk holds three of them
    eventually(rig.all_once)
    agent.stop()
    rig.write(16)
    eventually(rig.all_once)


def test_blank_and_endless_lines_are_counted_as_the_agent_counts_them(rig: Rig) -> None:
    rig.write(1)
    with rig.file.open("ab") as file:
        file.write(b"\n \x1c \n" + b"{}" * 700_000 + b"\n\xc2\xa0\n")
    with rig.file.open("a") as file:
        file.write('{"number": 2}\n')
    eventually(lambda: len(rig.logs.events) == 3)
    agent = rig.agent()
    with rig.file.open("a") as file:
        file.write('{"number": 3}\n')
    eventually(lambda: agent.numbers()["events_shipped_total"] == 4)
    agent.stop()
    assert [json.loads(text)["number"] for text in rig.logs.events if len(text) < 100] == [1, 2, 3]


def test_a_line_that_is_refused_is_one_event_all_the_same(rig: Rig) -> None:
    rig.logs.refuses = lambda text: "secret" in text
    rig.write(2)
    with rig.file.open("a") as file:
        file.write('{"secret": 1}\n')
    rig.write(2)
    eventually(lambda: len(rig.logs.events) == 5)
    assert "[holdfast] CloudWatch Logs rejected a line" in rig.logs.events[2]
    agent = rig.agent()
    rig.write(1)
    eventually(lambda: agent.numbers()["events_shipped_total"] == 6)
    agent.stop()
    assert len(rig.logs.events) == 6

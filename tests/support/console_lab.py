"""A console without a cluster: nodes and events that a test chooses, served as those of a cluster are."""

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.cli.console import serve
from holdfast.cli.console.feed import ClusterFacts, Pace, Reading
from holdfast.cli.console.model import GroupFacts, NodeFacts
from holdfast.cli.views.incidents import Fleet
from holdfast_common import Event, parse_events

QUICK = Pace(events_s=0.1, cluster_s=0.1)


@dataclass
class FakeSource:
    """Cluster and log in memory; a test changes both while they are read."""

    facts: ClusterFacts | None
    log: list[Event] = field(default_factory=list)
    note: str = ""
    taken_down: bool = False
    failure: Exception | None = None

    def cluster(self) -> ClusterFacts | None:
        if self.failure is not None:
            raise self.failure
        return self.facts

    def events(self, *, since_ns: int) -> Iterator[Event]:
        return iter([event for event in self.log if event.time_ns >= since_ns])

    def is_taken_down(self) -> bool:
        return self.taken_down


def facts_of(count: int = 5, *, group: str = "workers", instance_type: str = "ml.p5.48xlarge") -> ClusterFacts:
    """A controller and workers in service."""
    controller = NodeFacts(
        instance_id="i-58eaac38bf4a40955",
        group="controller",
        instance_type="ml.m5.2xlarge",
        host="ip-10-1-0-10",
        status="Running",
    )
    workers = [
        NodeFacts(
            instance_id=f"i-{number:017x}",
            group=group,
            instance_type=instance_type,
            host=f"ip-10-1-{number // 200}-{number % 200 + 11}",
            status="Running",
        )
        for number in range(count)
    ]
    return ClusterFacts(
        name="lab",
        status="InService",
        message="",
        orchestrator="Slurm",
        groups=[
            GroupFacts(name="controller", instance_type="ml.m5.2xlarge", target=1),
            GroupFacts(name=group, instance_type=instance_type, target=count),
        ],
        nodes=[controller, *workers],
    )


def recorded(repository: Path, name: str) -> list[Event]:
    text = (repository / "tests" / "cases" / "events" / f"{name}.jsonl").read_text()
    return list(parse_events(text.splitlines()).events)


def moved(events: Iterable[Event], *, end_ns: int) -> list[Event]:
    """The same events, the last of them at this time."""
    found = sorted(events, key=lambda event: event.time_ns)
    by_ns = end_ns - found[-1].time_ns
    return [replace(event, time_ns=event.time_ns + by_ns) for event in found]


def reading(since_ns: int = 0) -> Reading:
    return Reading(cloud="embedded", region="us-west-2", version="1.2.3", since="7d", since_ns=since_ns)


@dataclass
class Served:
    url: str = ""
    gone: str | None = None
    """Reason why it ended; None while it runs."""


@contextlib.contextmanager
def served(source: FakeSource, *, pace: Pace = QUICK, since_ns: int = 0) -> Iterator[Served]:
    """A console in a thread; ends with the block, as if its cluster were taken down."""
    found, ready = Served(), threading.Event()

    def announce(url: str) -> None:
        found.url = url
        ready.set()

    def run() -> None:
        found.gone = serve(
            source, reading=reading(since_ns), pace=pace, fleet=lambda _: Fleet(), port=0, announce=announce
        )

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(10.0)
        yield found
    finally:
        source.taken_down = True
        thread.join(10.0)
        assert not thread.is_alive()


def wait_until(true: "object", *, within_s: float = 10.0) -> None:
    deadline = time.monotonic() + within_s
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)

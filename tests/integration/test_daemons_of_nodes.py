"""Daemons of real nodes that end or stand still while their sessions go on: reported, and restarted."""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from holdfast.localcloud.hyperpod.upkeep import Upkeep, WatchedNode
from holdfast.localcloud.nodes import Fleet, Node, NodeSpec
from holdfast.localcloud.roster import Place
from holdfast_common import kinds

pytestmark = pytest.mark.root

RUN = "setsid bash -c 'exec -a \"{title}\" /usr/local/bin/sshd 600' >/dev/null 2>&1 </dev/null &"
DAEMON = RUN.format(title="/usr/sbin/sshd -D [listener] 0 of 10-100 startups")
SESSION = RUN.format(title="sshd: ubuntu [priv]")
SYSTEMCTL = f"""#!/bin/sh
case "$1" in
is-active) cat /run/state ;;
restart) echo "$2" >> /run/restarted; {DAEMON} ;;
esac
"""


@dataclass
class Sink:
    """Events of the control plane."""

    told: list[tuple[str, str]] = field(default_factory=list)

    def emit(self, kind: str, *, evidence: str, **_: Any) -> None:
        self.told.append((kind, evidence))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    fleet = Fleet(home=tmp_path / "home")
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    made = fleet.boot(NodeSpec(instance_id="i-00000000000000011", hostname="ip-10-1-0-11", address="10.1.0.11"))
    made.write_file("/usr/local/bin/systemctl", SYSTEMCTL.encode(), mode=0o755)
    made.write_file("/usr/local/bin/sshd", Path("/bin/sleep").read_bytes(), mode=0o755)
    made.write_file("/run/state", b"failed\n")
    for program in (DAEMON, SESSION):
        assert made.run(["/bin/sh", "-c", program], timeout_s=10).returncode == 0
    for title in ("^/usr/sbin/sshd -D", "^sshd: "):  # a shell has their names until it becomes them
        eventually(lambda title=title: made.run(["pgrep", "-f", title], timeout_s=10).returncode == 0, title)
    yield made
    fleet.close()


@pytest.fixture
def watched(node: Node) -> Iterator[tuple[Upkeep, Sink]]:
    sink = Sink()
    with ThreadPoolExecutor(2) as pool:
        kept = WatchedNode(node=node, cluster="demo", place=Place.COMPUTE)
        yield Upkeep(kept=lambda: [kept], events=sink, pool=pool), sink  # type: ignore[arg-type]


def end(node: Node, sign: signal.Signals) -> None:
    """The daemon, and not its session."""
    done = node.run(["pkill", f"-{sign.value}", "-f", "^/usr/sbin/sshd -D"], timeout_s=10)
    assert done.returncode == 0


def looking(upkeep: Upkeep, sink: Sink, *, until: int, within_s: float) -> float:
    """Seconds until so many events were written."""
    began = time.monotonic()

    def enough() -> bool:
        upkeep.look()
        return len(sink.told) >= until

    eventually(enough, f"{until} events", within_s=within_s)
    return time.monotonic() - began


def test_an_sshd_that_is_killed_is_reported_although_a_session_goes_on_and_is_restarted(
    node: Node, watched: tuple[Upkeep, Sink]
) -> None:
    upkeep, sink = watched
    upkeep.look()
    end(node, signal.SIGKILL)
    assert looking(upkeep, sink, until=1, within_s=15.0) < 15.0
    assert sink.told == [(kinds.DAEMON_LOST, "sshd on ip-10-1-0-11 has ended")]
    assert upkeep.problem().startswith("sshd of i-00000000000000011 is gone since ")
    looking(upkeep, sink, until=2, within_s=30.0)
    assert sink.told[1] == (kinds.DAEMON_RESTORED, "sshd on ip-10-1-0-11 runs again")
    assert node.read_file("/run/restarted") == b"ssh\n"


@pytest.mark.e2e
def test_an_sshd_that_stands_still_is_reported_although_a_session_goes_on(
    node: Node, watched: tuple[Upkeep, Sink]
) -> None:
    upkeep, sink = watched
    upkeep.look()
    end(node, signal.SIGSTOP)
    assert looking(upkeep, sink, until=1, within_s=15.0) < 15.0
    assert sink.told == [(kinds.DAEMON_LOST, "sshd on ip-10-1-0-11 is stopped by a signal")]


@pytest.mark.e2e
def test_an_sshd_that_was_stopped_on_purpose_is_left_alone(node: Node, watched: tuple[Upkeep, Sink]) -> None:
    upkeep, sink = watched
    upkeep.look()
    node.write_file("/run/state", b"inactive\n")
    end(node, signal.SIGKILL)
    for _ in range(12):
        upkeep.look()
        time.sleep(1.0)
    assert sink.told == []

"""The keeper, with real processes: what dies comes back, what is ended stays down, what stands still is told."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.localcloud import processes
from holdfast.localcloud.keeper import Keeper
from holdfast.localcloud.processes import process_state
from holdfast.localcloud.supervision import Pass, Passes, passes_path

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@dataclass
class Cloud:
    """Two processes that sleep."""

    home: Path
    started: list[str] = field(default_factory=list)
    broken: bool = False

    def start_aws(self) -> bool:
        return self._start("aws")

    def start_hyperpod(self, *, region: str) -> bool:
        assert region == "us-west-2"
        return self._start("hyperpod")

    def _start(self, name: str) -> bool:
        if self.broken:
            raise OSError("no space left")
        processes.start(name=name, argv=SLEEP, home=self.home, ready=lambda: True)
        self.started.append(name)
        return True


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    made = Cloud(home=tmp_path)
    made.start_aws()
    made.start_hyperpod(region="us-west-2")
    made.started.clear()
    yield made
    for name in ("aws", "hyperpod"):
        processes.stop(name=name, home=tmp_path)


@pytest.fixture
def keeper(cloud: Cloud) -> Keeper:
    return Keeper(cloud=cloud, region="us-west-2", stopping=threading.Event())


def kill(cloud: Cloud, name: str, sign: signal.Signals = signal.SIGKILL) -> int:
    process = processes.find(name=name, home=cloud.home)
    assert process is not None
    os.kill(process.pid, sign)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
    return process.pid


@pytest.mark.parametrize("name", ["aws", "hyperpod"])
def test_a_process_that_was_killed_is_started_again(cloud: Cloud, keeper: Keeper, name: str) -> None:
    keeper.look()
    assert cloud.started == []
    old = kill(cloud, name)
    keeper.look()
    assert cloud.started == [name]
    found = processes.find(name=name, home=cloud.home)
    assert found is not None
    assert found.pid != old


def test_a_process_that_was_ended_stays_down(cloud: Cloud, keeper: Keeper) -> None:
    processes.stop(name="aws", home=cloud.home)
    keeper.look()
    assert cloud.started == []


def test_one_that_cannot_be_started_keeps_the_other_not_waiting(cloud: Cloud, keeper: Keeper) -> None:
    cloud.broken = True
    kill(cloud, "aws")
    keeper.look()
    cloud.broken = False
    kill(cloud, "hyperpod")
    keeper.look()
    assert cloud.started == ["hyperpod"]
    (aws, _) = keeper._told()
    assert aws.problem == "aws cannot be started again: no space left"


def test_a_process_that_stands_still_is_told_with_the_way_to_let_it_go_on(cloud: Cloud, keeper: Keeper) -> None:
    pid = kill(cloud, "hyperpod", signal.SIGSTOP)
    keeper.look()
    assert cloud.started == []
    found = process_state("hyperpod", home=cloud.home)
    assert found.state == "stopped"
    assert found.problems == (
        f"the HyperPod control plane is stopped by a signal and does nothing; let it go on with: kill -CONT {pid}",
    )


def test_a_process_that_runs_and_says_nothing_is_told(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    process = processes.find(name="aws", home=cloud.home)
    assert process is not None
    path = passes_path(cloud.home, "aws")
    Passes(path=path, told=lambda: [Pass(name="snapshots", at=0.0, late_after_s=1e9)]).write()
    content = path.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {process.pid}')
    path.write_text(content)
    assert process_state("aws", home=cloud.home).problems == ()
    monkeypatch.setattr("holdfast.localcloud.processes.state.SILENT_AFTER_S", -1.0)
    assert "has said nothing for 0 s; see its log" in process_state("aws", home=cloud.home).problems[0]


def test_a_process_that_is_not_there_is_told_and_a_keeper_that_nobody_asked_for_is_not(tmp_path: Path) -> None:
    assert process_state("aws", home=tmp_path).problems == ("the embedded AWS is not running",)
    assert process_state("keeper", home=tmp_path).problems == ()

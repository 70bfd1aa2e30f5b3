"""The keeper, with real processes: what dies comes back, what is ended stays down, what stands still is told."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from waiting import eventually

from holdfast.localcloud import processes
from holdfast.localcloud.keeper import ProcessKeeper
from holdfast.localcloud.kernel_log import KernelLogs
from holdfast.localcloud.nodes import NodeError
from holdfast.localcloud.processes import LocalCloud, process_state
from holdfast.localcloud.supervision import Pass, Passes, passes_path

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@dataclass
class Cloud:
    """Two processes that sleep, and the one that serves kernel logs of no nodes."""

    home: Path
    started: list[str] = field(default_factory=list)
    broken: bool = False

    def start_aws(self) -> bool:
        return self._start("aws")

    def start_hyperpod(self, *, region: str) -> bool:
        assert region == "us-west-2"
        return self._start("hyperpod")

    def kernel_logs_died(self) -> bool:
        return LocalCloud(home=self.home).kernel_logs_died()

    def restore_kernel_logs(self) -> None:
        if self.broken:
            raise NodeError("i-1: the kernel log cannot be mounted again")
        KernelLogs(self.home / "nodes").start()
        self.started.append("kernel-log")

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
def keeper(cloud: Cloud) -> ProcessKeeper:
    return ProcessKeeper(cloud=cloud, region="us-west-2", stopping=threading.Event())


def kill(cloud: Cloud, name: str, sign: signal.Signals = signal.SIGKILL) -> int:
    process = processes.find(name=name, home=cloud.home)
    assert process is not None
    os.kill(process.pid, sign)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
    return process.pid


@pytest.mark.parametrize("name", ["aws", "hyperpod"])
def test_a_process_that_was_killed_is_started_again(cloud: Cloud, keeper: ProcessKeeper, name: str) -> None:
    keeper.look()
    assert cloud.started == []
    old = kill(cloud, name)
    keeper.look()
    assert cloud.started == [name]
    found = processes.find(name=name, home=cloud.home)
    assert found is not None
    assert found.pid != old


def test_a_process_that_was_ended_stays_down(cloud: Cloud, keeper: ProcessKeeper) -> None:
    processes.stop(name="aws", home=cloud.home)
    keeper.look()
    assert cloud.started == []


def test_one_that_cannot_be_started_keeps_the_other_not_waiting(cloud: Cloud, keeper: ProcessKeeper) -> None:
    cloud.broken = True
    kill(cloud, "aws")
    keeper.look()
    cloud.broken = False
    kill(cloud, "hyperpod")
    keeper.look()
    assert cloud.started == ["hyperpod"]
    aws, *_ = keeper._reported()
    assert (aws.restarts, aws.problem) == (0, "aws: restart failed: no space left")


def test_a_process_that_stands_still_is_told_with_the_way_to_let_it_go_on(cloud: Cloud, keeper: ProcessKeeper) -> None:
    pid = kill(cloud, "hyperpod", signal.SIGSTOP)
    keeper.look()
    assert cloud.started == []
    found = process_state("hyperpod", home=cloud.home)
    assert found.state == "stopped"
    assert found.problems == (f"the HyperPod control plane is stopped by a signal; continue it with: kill -CONT {pid}",)


def test_a_process_that_runs_and_says_nothing_is_told(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    process = processes.find(name="aws", home=cloud.home)
    assert process is not None
    path = passes_path(cloud.home, "aws")
    Passes(path=path, reported=lambda: [Pass(name="snapshots", at=0.0, late_after_s=1e9)]).write()
    content = path.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {process.pid}')
    path.write_text(content)
    assert process_state("aws", home=cloud.home).problems == ()
    monkeypatch.setattr("holdfast.localcloud.processes.state.SILENT_AFTER_S", -1.0)
    assert "has reported nothing for 0 s; see its log" in process_state("aws", home=cloud.home).problems[0]


def test_a_process_that_is_not_there_is_told_and_a_keeper_that_nobody_asked_for_is_not(tmp_path: Path) -> None:
    assert process_state("aws", home=tmp_path).problems == ("the embedded AWS is not running",)
    assert process_state("keeper", home=tmp_path).problems == ()


@pytest.fixture
def logs(cloud: Cloud) -> Iterator[KernelLogs]:
    (cloud.home / "nodes").mkdir()
    made = KernelLogs(cloud.home / "nodes")
    made.start()
    yield made
    made.stop()


def server(logs: KernelLogs) -> int:
    known = logs.process()
    assert known is not None
    return known[0]


def dies(cloud: Cloud, logs: KernelLogs) -> int:
    pid = server(logs)
    os.kill(pid, signal.SIGKILL)
    eventually(cloud.kernel_logs_died, "its death")
    return pid


def test_the_process_behind_the_kernel_logs_is_started_again_and_its_death_is_told(
    cloud: Cloud, keeper: ProcessKeeper, logs: KernelLogs
) -> None:
    keeper.look()
    assert cloud.started == []
    old = dies(cloud, logs)
    assert "the process behind the kernel logs of all nodes is not running" in LocalCloud(home=cloud.home).problems()
    keeper.look()
    assert cloud.started == ["kernel-log"]
    assert server(logs) != old
    (told,) = [one for one in keeper._reported() if one.name == "kernel-log"]
    assert (told.restarts, told.why) == (1, "it exited; see nodes/kernel-log/log")
    assert process_state("kernel-log", home=cloud.home).state == "running"


def test_kernel_logs_that_cannot_be_served_again_are_told(
    cloud: Cloud, keeper: ProcessKeeper, logs: KernelLogs
) -> None:
    cloud.broken = True
    dies(cloud, logs)
    keeper.look()
    (told,) = [one for one in keeper._reported() if one.name == "kernel-log"]
    assert told.problem == "kernel-log: restart failed: i-1: the kernel log cannot be mounted again"
    cloud.broken = False


def test_kernel_logs_that_were_ended_stay_so_and_nobody_misses_them(
    cloud: Cloud, keeper: ProcessKeeper, logs: KernelLogs
) -> None:
    logs.stop()
    keeper.look()
    assert cloud.started == []
    assert [one.name for one in LocalCloud(home=cloud.home).processes()] == ["aws", "hyperpod", "keeper"]


def test_a_process_behind_the_kernel_logs_that_stands_still_is_told_and_let_go_on(
    cloud: Cloud, keeper: ProcessKeeper, logs: KernelLogs
) -> None:
    pid = server(logs)
    os.kill(pid, signal.SIGSTOP)
    local = LocalCloud(home=cloud.home)
    eventually(lambda: process_state("kernel-log", home=cloud.home).state == "stopped", "the stop")
    for _ in range(300):  # and to look at it fills no queue of its
        keeper.look()
        local.processes()
    assert cloud.started == []
    assert f"continue it with: kill -CONT {pid}" in "\n".join(local.problems())
    local.go_on()
    eventually(lambda: process_state("kernel-log", home=cloud.home).state == "running", "its return")
    assert logs.names() == []

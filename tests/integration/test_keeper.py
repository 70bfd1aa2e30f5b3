"""The keeper, with real processes: what dies comes back, what is ended stays down, what stands still is told."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from waiting import eventually

from holdfast.localcloud import processes
from holdfast.localcloud.keeper import ProcessKeeper
from holdfast.localcloud.kernel_log import KernelLogs
from holdfast.localcloud.nodes import NodeError
from holdfast.localcloud.processes import KeptProcess, LocalCloud, process_state
from holdfast.localcloud.supervision import Pass, Passes, passes_path

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@dataclass
class Cloud:
    """Three processes that sleep, and the one that serves kernel logs of no nodes."""

    home: Path
    started: list[str] = field(default_factory=list)
    broken: bool = False

    def start_aws(self) -> bool:
        return self._start("aws")

    def start_hyperpod(self, *, region: str) -> bool:
        assert region == "us-west-2"
        return self._start("hyperpod")

    def restart_monitor(self) -> bool:
        return self._start("monitor")

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
    made.restart_monitor()
    made.started.clear()
    yield made
    for name in ("aws", "hyperpod", "monitor"):
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


@pytest.mark.parametrize("name", ["aws", "hyperpod", "monitor"])
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


def test_one_whose_start_failed_is_started_once_more_without_its_record(
    cloud: Cloud, keeper: ProcessKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.localcloud.processes.kept.FIRST_PAUSE_S", 0.0)
    monitor = next(one for one in keeper._kept if one.name == "monitor")
    kill(cloud, "monitor")
    cloud.broken = True
    keeper.look()
    (cloud.home / "run" / "monitor.json").unlink()  # as a start that fails does
    assert monitor.reported().problem == "monitor: restart failed: no space left"
    cloud.broken = False
    keeper.look()
    assert cloud.started == ["monitor"]
    assert (monitor.reported().restarts, monitor.reported().problem) == (1, "")


@pytest.fixture
def kept_keeper(tmp_path: Path) -> Iterator[tuple[LocalCloud, KeptProcess]]:
    """A real keeper of nothing, and what the control plane does about it."""
    local = LocalCloud(home=tmp_path, port=1)
    local.start_keeper(region="us-west-2")
    yield local, KeptProcess.recorded("keeper", home=tmp_path, start=partial(local.restart_keeper, region="us-west-2"))
    processes.stop(name="keeper", home=tmp_path)


def test_a_keeper_that_was_killed_is_started_again(kept_keeper: tuple[LocalCloud, KeptProcess]) -> None:
    local, keeper = kept_keeper
    old = processes.find(name="keeper", home=local.home)
    assert old is not None
    os.kill(old.pid, signal.SIGKILL)
    os.waitid(os.P_PID, old.pid, os.WEXITED | os.WNOWAIT)
    keeper.look()
    found = processes.find(name="keeper", home=local.home)
    assert found is not None
    assert found.pid != old.pid
    assert keeper.reported().restarts == 1
    assert "process keeper failed and was restarted once" in keeper.reported().problems(now=time.monotonic())[0]


def test_a_keeper_that_a_command_ends_stays_down_though_it_is_seen_dead_before_its_record_is_removed(
    kept_keeper: tuple[LocalCloud, KeptProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    local, keeper = kept_keeper
    looking = threading.Thread(target=keeper.look)
    end = processes.Process.end

    def ended(process: processes.Process) -> None:
        end(process)
        if processes.has_died(name="keeper", home=local.home):
            looking.start()
            time.sleep(0.2)

    monkeypatch.setattr(processes.Process, "end", ended)
    local.stop()
    looking.join(10)
    assert processes.find(name="keeper", home=local.home) is None
    assert keeper.reported().restarts == 0


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
    assert [one.name for one in LocalCloud(home=cloud.home).processes()] == ["aws", "hyperpod", "keeper", "monitor"]


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

"""A program of a control plane of EKS that stands still: reported, then ended, while the API server answers."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.localcloud.kubernetes.control import Keeper


@dataclass
class Plane:
    """A control plane whose programs the test stops."""

    stopped: list[str] = field(default_factory=list)
    answers: bool = True
    lost: list[str] = field(default_factory=list)
    revived: int = 0
    is_started: bool = True
    cluster: Any = field(default_factory=lambda: SimpleNamespace(key="eks-1", name="demo"))

    @property
    def api(self) -> Any:
        return SimpleNamespace(is_ready=lambda timeout_s: self.answers)

    def restart_loops(self) -> list[str]:
        lost, self.lost = self.lost, []
        return lost

    def bound_logs(self) -> None:
        pass

    def stopped_programs(self) -> list[str]:
        return self.stopped

    def restart_stalled(self) -> None:
        self.revived += 1
        self.stopped = []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("holdfast.localcloud.kubernetes.control.keeper.time.monotonic", lambda: now[0])
    return now


def passes(keeper: Keeper, clock: list[float], seconds: float) -> None:
    for _ in range(int(seconds / 2)):
        clock[0] += 2.0
        keeper.look()


def test_a_scheduler_that_stands_still_is_reported_and_then_ended(clock: list[float]) -> None:
    plane = Plane()
    keeper = Keeper(planes=lambda: [plane])  # type: ignore[list-item]
    passes(keeper, clock, 10)
    assert (keeper.problem(), plane.revived) == ("", 0)
    plane.stopped = ["kube-scheduler"]
    passes(keeper, clock, 6)
    assert keeper.problem() == "EKS cluster demo: kube-scheduler stopped by a signal for 4 s"
    assert plane.revived == 0
    passes(keeper, clock, 28)
    assert plane.revived == 1
    passes(keeper, clock, 2)
    assert keeper.problem() == ""


def test_lost_loops_are_restarted_and_logged(clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    plane = Plane(lost=["etcd", "kube-proxy"])
    keeper = Keeper(planes=lambda: [plane])  # type: ignore[list-item]
    passes(keeper, clock, 4)
    assert caplog.messages == ["EKS cluster demo: lost loops: restarting etcd, kube-proxy"]


def test_an_api_server_that_a_busy_machine_starts_slowly_gets_longer_each_time_and_comes_up(clock: list[float]) -> None:
    plane = Plane(answers=False)
    keeper = Keeper(planes=lambda: [plane])  # type: ignore[list-item]
    passes(keeper, clock, 6)
    assert plane.revived == 1
    passes(keeper, clock, 26)
    assert plane.revived == 2, "20 s are enough on a machine that is not busy"
    passes(keeper, clock, 40)
    assert plane.revived == 2, "a start of 40 s is not cut off"
    plane.answers = True
    passes(keeper, clock, 2)
    plane.answers = False
    passes(keeper, clock, 6)
    assert plane.revived == 3, "one that answered and hangs is restarted as fast as before"


def test_one_that_goes_on_in_time_is_left_alone(clock: list[float]) -> None:
    plane = Plane()
    keeper = Keeper(planes=lambda: [plane])  # type: ignore[list-item]
    for _ in range(5):
        plane.stopped = ["etcd"]
        passes(keeper, clock, 20)
        plane.stopped = []
        passes(keeper, clock, 2)
    assert (keeper.problem(), plane.revived) == ("", 0)


def test_a_cluster_that_is_gone_is_told_of_no_more(clock: list[float]) -> None:
    planes = [Plane(stopped=["etcd"])]
    keeper = Keeper(planes=lambda: planes)  # type: ignore[arg-type, return-value]
    passes(keeper, clock, 10)
    assert "EKS cluster demo: etcd" in keeper.problem()
    planes.clear()
    passes(keeper, clock, 2)
    assert keeper.problem() == ""

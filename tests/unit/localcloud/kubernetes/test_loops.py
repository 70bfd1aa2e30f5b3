"""Loops around the programs of a control plane of EKS: a lost one is started again, with its program."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.localcloud.kubernetes.binaries import Binaries
from holdfast.localcloud.kubernetes.control import ControlPlane
from holdfast.localcloud.roster import LOOP, Place, at

LOOPS = [one.name for one in at(Place.CONTROL_PLANE) if one.name.endswith(LOOP)]


@dataclass
class Instance:
    """An instance whose programs the test loses."""

    started: list[list[str]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    logs: Path = Path("missing")
    spec: Any = field(default_factory=lambda: SimpleNamespace(instance_id="eks-1"))

    def alive(self) -> bool:
        return True

    def inside(self, path: str) -> Any:
        name = path.rpartition("/")[2]
        return SimpleNamespace(exists=lambda: path == "/run/kube/second", stat=lambda: (self.logs / name).stat())

    def run(self, argv: list[str], *, timeout_s: float) -> None:
        self.ended.append(argv[-1])
        if argv[-1].endswith(".log"):
            subprocess.run([*argv[:-1], self.logs / Path(argv[-1]).name], check=True, timeout=timeout_s)

    def popen(self, argv: list[str], *, env: Any) -> Any:
        self.started.append(argv)
        return SimpleNamespace(wait=lambda timeout_s: 0)


@pytest.fixture
def instance() -> Instance:
    return Instance()


@pytest.fixture
def plane(tmp_path: Path, instance: Instance) -> Iterator[ControlPlane]:
    fleet: Any = SimpleNamespace(nodes=list, node=lambda key: instance, stream=None)
    cluster: Any = SimpleNamespace(key="eks-1", name="demo", services="172.20.0.0/16", issuer="https://x")
    made = ControlPlane(
        cluster,
        directory=tmp_path / "eks-1",
        fleet=fleet,
        binaries=Binaries(directory=tmp_path, version="1.20.2"),
        network="10.1.0.0/16",
    )
    yield made
    made.stop()


def runs(monkeypatch: pytest.MonkeyPatch, **states: str) -> None:
    """Let the loops run, but for those in ``states``; empty: gone."""
    found = {name: states.get(name.removesuffix(LOOP).replace("-", "_"), "S") for name in LOOPS}
    seen = {"eks-1": {name: state for name, state in found.items() if state}}
    monkeypatch.setattr("holdfast.localcloud.kubernetes.control.control_plane.census", lambda nodes, sought: seen)


def test_loops_that_run_are_left_alone(
    plane: ControlPlane, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(monkeypatch)
    assert plane.restart_loops() == []
    assert instance.started == []


@pytest.mark.parametrize("state", ["", "T"], ids=["killed", "stopped"])
def test_a_lost_loop_is_started_again_after_the_end_of_what_is_left_of_it(
    plane: ControlPlane, instance: Instance, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    runs(monkeypatch, kube_proxy=state)
    assert plane.restart_loops() == ["kube-proxy"]
    (argv,) = instance.started
    assert argv[:7] == ["setsid", "--fork", "/bin/sh", "/run/kube/respawn", "kube-proxy", *argv[5:7]]
    (pattern,) = instance.ended
    loop, program = argv[2:], argv[5:]
    assert all(re.match(pattern, " ".join(left)) for left in (loop, program))
    assert not re.match(pattern, "/bin/sh -c pkill kube-proxy ")


def test_an_instance_that_has_gone_meanwhile_starts_nothing(
    plane: ControlPlane, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.localcloud.kubernetes.control.control_plane.census", lambda nodes, sought: {})
    assert plane.restart_loops() == []
    assert instance.started == []


def test_a_log_that_the_requests_of_pods_have_filled_is_turned_over(
    plane: ControlPlane, instance: Instance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("holdfast.localcloud.kubernetes.control.control_plane.LARGEST_LOG_BYTES", 10)
    instance.logs = tmp_path
    for name, text in {"kube-apiserver": "refused a pod\n", "etcd": "short\n"}.items():
        (tmp_path / f"{name}.log").write_text(text)
    with (tmp_path / "kube-apiserver.log").open("a") as program:
        plane.bound_logs()
        program.write("refused it again\n")
    found = {path.name: path.read_text() for path in tmp_path.glob("*.log*")}
    assert found == {
        "kube-apiserver.log": "refused it again\n",
        "kube-apiserver.log.1": "refused a pod\n",
        "etcd.log": "short\n",
    }

"""What tests of killed programs go by: whose process it is, what was lost, which pods were touched."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kubernetes_kills import Ledger, Process, allowed_s, belongs, is_program, lives, processes
from waiting import eventually


@pytest.mark.parametrize(
    ("argv", "name", "expected"),
    [
        (["/opt/kube/tools/hyperkube", "kube-apiserver", "--x"], "kube-apiserver", True),
        (["/usr/bin/kube-apiserver", "--x"], "kube-apiserver", True),
        (
            ["/bin/sh", "/run/kube/respawn", "kube-apiserver", "/opt/hyperkube", "kube-apiserver"],
            "kube-apiserver",
            False,
        ),
        (["/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io"], "containerd", False),
        (["/usr/bin/containerd"], "containerd", True),
        (["/usr/bin/python3", "kube-apiserver.log"], "kube-apiserver", False),
    ],
)
def test_a_program_is_told_by_its_first_words(argv: list[str], name: str, expected: bool) -> None:
    assert is_program(argv, name) is expected


def test_a_process_is_of_the_home_that_its_files_or_its_root_lie_in() -> None:
    root = "35 1 0:40 / / rw - overlay overlay rw,lowerdir=/,upperdir=/var/one/nodes/i-1/upper"
    other = "36 35 0:41 / /var/one/x rw - tmpfs tmpfs rw"

    assert belongs(argv=["etcd", "--data-dir=/var/one/etcd"], mounts="", home="/var/one")
    assert belongs(argv=["kubelet"], mounts=root, home="/var/one")
    assert not belongs(argv=["kubelet"], mounts=root, home="/var/on")
    assert not belongs(argv=["kubelet"], mounts=other, home="/var/one")
    assert not belongs(argv=["etcd", "--data-dir=/var/one-more/etcd"], mounts="", home="/var/one")


def test_a_running_process_is_found_killed_and_over(tmp_path: Path) -> None:
    program = tmp_path / "etcd"
    program.symlink_to(sys.executable)
    child = subprocess.Popen([program, "-c", "import time; time.sleep(60)"])
    try:
        [found] = eventually(lambda: processes(tmp_path, "etcd"), "the program")
        assert found.pid == child.pid
        assert not found.is_over()
        found.signal(signal.SIGKILL)
        child.wait(10)
        assert found.is_over()
        assert processes(tmp_path, "etcd") == []
    finally:
        child.kill()
        child.wait(10)


def test_a_number_that_was_given_to_another_process_is_not_signalled() -> None:
    with pytest.raises(AssertionError, match="is gone"):
        Process(pid=os.getpid(), start_ticks=1).signal(signal.SIGKILL)


def test_an_overloaded_machine_has_longer() -> None:
    assert [allowed_s(load) for load in (0.5, 3.0, 9.0)] == [10.0, 10.0, 30.0]


def test_what_is_gone_or_different_is_lost() -> None:
    ledger = Ledger(acknowledged={"a": "1", "b": "2", "c": "3"})

    assert ledger.lost({"a": "1", "b": "other", "d": "4"}) == ["b", "c"]
    assert ledger.lost({"a": "1", "b": "2", "c": "3", "d": "4"}) == []


def test_a_container_that_was_started_again_is_seen() -> None:
    def seen(container: str, started: str, restarts: int) -> dict[str, tuple[str, ...]]:
        status = {"containerID": container, "restartCount": restarts, "state": {"running": {"startedAt": started}}}
        return lives([{"metadata": {"name": "p", "uid": "u"}, "status": {"containerStatuses": [status]}}])

    before = seen("c1", "t1", 0)
    assert before == seen("c1", "t1", 0)
    assert before not in (seen("c2", "t1", 0), seen("c1", "t2", 0), seen("c1", "t1", 1))

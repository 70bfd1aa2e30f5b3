"""The list of processes against a real Slurm cluster: which daemons its nodes have, and what becomes of a lost one."""

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest
from slurm_lab import SlurmLab
from waiting import eventually

from holdfast.localcloud.nodes import Node
from holdfast.localcloud.nodes.kernel import proc
from holdfast.localcloud.roster import Place, SystemProcess, upkept

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm]

WITHOUT_LIFECYCLE = ("holdfast-agent", "witness")
"""They come with our lifecycle scripts, which this cluster has none of."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmLab]:
    made = SlurmLab(tmp_path_factory.mktemp("home"))
    yield made
    made.close()


def daemons(place: Place) -> list[SystemProcess]:
    return [one for one in upkept(place) if one.name not in WITHOUT_LIFECYCLE]


def pids(node: Node, process: SystemProcess) -> set[int]:
    """Of its parents, without children of theirs."""

    def is_one(pid: int) -> bool:
        line = proc.command_line(pid)
        return proc.program(pid) in process.shown and (not process.marks or any(mark in line for mark in process.marks))

    own = {pid for pid in proc.members(node.pid) if is_one(pid)}
    return {pid for pid in own if proc.parent(pid) not in own}


def told(lab: SlurmLab, node: Node, kind: str, program: str) -> int:
    logs = lab.client("logs").filter_log_events(logGroupName="/holdfast/lab/events")["events"]
    events = [json.loads(one["message"]) for one in logs]
    return sum(
        (event["kind"], event.get("node"), event.get("detail", {}).get("program"))
        == (kind, node.spec.instance_id, program)
        for event in events
    )


def test_nodes_have_the_daemons_of_the_list_once_each(lab: SlurmLab) -> None:
    for node, place in ((lab.controller, Place.CONTROLLER), *((one, Place.COMPUTE) for one in lab.workers)):
        found = {one.name: len(pids(node, one)) for one in daemons(place)}
        assert found == dict.fromkeys(found, 1), node.spec.hostname


@pytest.mark.parametrize(
    ("place", "name"), [(Place.COMPUTE, "sshd"), (Place.CONTROLLER, "sshd"), (Place.CONTROLLER, "mariadbd")]
)
def test_a_daemon_that_is_killed_is_reported_in_time_and_runs_again(lab: SlurmLab, place: Place, name: str) -> None:
    node = lab.controller if place is Place.CONTROLLER else lab.workers[0]
    (process,) = [one for one in daemons(place) if one.name == name]
    (old,) = pids(node, process)
    before = told(lab, node, "daemon_lost", name)
    time.sleep(2.0)  # it has been seen to run
    os.kill(old, signal.SIGKILL)
    began = time.monotonic()
    eventually(lambda: told(lab, node, "daemon_lost", name) > before, "the loss", within_s=60)
    took_s = time.monotonic() - began
    eventually(lambda: pids(node, process) - {old}, "another one", within_s=60)
    eventually(lambda: told(lab, node, "daemon_restored", name) > before, "its return", within_s=60)
    assert took_s < process.noticed_within_s


def test_no_daemon_of_a_calm_cluster_was_missed(lab: SlurmLab) -> None:
    for node in (lab.controller, *lab.workers):
        for name in ("slurmctld", "slurmdbd", "slurmd", "munged"):
            assert told(lab, node, "daemon_lost", name) == 0, (node.spec.hostname, name)

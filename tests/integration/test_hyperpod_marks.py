"""Nodes that Slurm marks: replaced where the reason is HyperPod's, whatever else is true of them; else left alone."""

import time
from collections.abc import Iterator

import pytest
from hyperpod_lab import HyperPodLab, hyperpod_lab, ok
from waiting import eventually

from holdfast_common import slurm_answers

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm]

LEFT_ALONE_S = 15.0
"""Several rounds of the control plane."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HyperPodLab]:
    with hyperpod_lab(tmp_path_factory.mktemp("marks")) as made:
        head = made.group("head", NodeType="Controller")
        workers = made.group("workers", count=2, NodeType="Compute", PartitionNames=["dev"])
        described = made.create("lab", [head, workers], NodeRecovery="Automatic")
        assert described["ClusterStatus"] == "InService", described.get("FailureMessage")
        yield made


def scontrol(lab: HyperPodLab, *words: str) -> str:
    return ok(lab.node("lab", "head"), "scontrol", *words)


def seen(lab: HyperPodLab, host: str) -> slurm_answers.SlurmNode:
    (node,) = slurm_answers.parse_nodes(scontrol(lab, "--oneliner", "show", "node", host))
    return node


def worker(lab: HyperPodLab) -> tuple[str, str]:
    """The id and the host name of a node that takes jobs."""

    def found() -> tuple[str, str] | None:
        for instance_id in lab.instances("lab", "workers"):
            host = lab.fleet.node(instance_id).spec.hostname
            if seen(lab, host).usable:
                return instance_id, host
        return None

    usable: tuple[str, str] = eventually(found)
    return usable


def mark(lab: HyperPodLab, host: str, *, state: str, reason: str) -> None:
    scontrol(lab, "update", f"NodeName={host}", f"State={state}", f"Reason={reason}")


def replaced(lab: HyperPodLab, instance_id: str) -> bool:
    there = lab.instances("lab", "workers")
    return instance_id not in there and list(there.values()) == ["Running"] * 2


@pytest.mark.documented("HP-59")
def test_a_marked_node_that_stops_answering_is_replaced_and_not_rebooted(lab: HyperPodLab) -> None:
    instance_id, host = worker(lab)
    job = ("-w", host, "-D", "/tmp", "-o", "/dev/null", "--no-requeue", "--wrap", "sleep 1000")
    ok(lab.node("lab", "head"), "sbatch", *job, user="ubuntu")
    eventually(lambda: not seen(lab, host).free)
    mark(lab, host, state="fail", reason="Action:Replace")
    ok(lab.fleet.node(instance_id), "sh", "-c", "kill -STOP $(pidof slurmd)")
    eventually(lambda: instance_id not in lab.instances("lab") or seen(lab, host).is_lost)
    assert eventually(lambda: replaced(lab, instance_id))


@pytest.mark.documented("HP-59")
def test_a_marked_node_in_a_reservation_is_replaced(lab: HyperPodLab) -> None:
    instance_id, host = worker(lab)
    reservation = ("ReservationName=planned", f"Nodes={host}", "StartTime=now", "Duration=UNLIMITED", "Users=root")
    scontrol(lab, "create", "reservation", *reservation, "Flags=MAINT,IGNORE_JOBS")
    mark(lab, host, state="fail", reason="Action:Replace")
    assert eventually(lambda: replaced(lab, instance_id))
    scontrol(lab, "delete", "ReservationName=planned")


def test_a_node_that_a_person_drained_with_a_reason_of_their_own_is_left_alone(lab: HyperPodLab) -> None:
    instance_id, host = worker(lab)
    reason = "cable: no Action:Replace yet"
    mark(lab, host, state="drain", reason=reason)
    until = time.monotonic() + LEFT_ALONE_S
    while time.monotonic() < until:
        assert lab.instances("lab", "workers")[instance_id] == "Running"
        assert seen(lab, host).given_reason == reason
        time.sleep(0.5)
    scontrol(lab, "update", f"NodeName={host}", "State=resume")
    eventually(lambda: seen(lab, host).usable)

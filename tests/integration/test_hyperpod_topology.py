"""The topology that HyperPod writes, in real Slurm: what jobs see of it, and that it follows the cluster's nodes."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bare_slurm import BareSlurm, bare_slurm
from hyperpod_lab import HyperPodLab, hyperpod_lab, ok
from waiting import eventually

from holdfast.localcloud.hyperpod.slurm import topology_conf
from holdfast_runtime.launcher.settings import find_rack

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm]
NODES = 5
GONE = "n9"
"""A node that the topology still names."""
SETTING = "TopologyPlugin=topology/tree"
SHOW = ("sh", "-c", 'echo "$SLURMD_NODENAME $SLURM_TOPOLOGY_ADDR $SLURM_TOPOLOGY_ADDR_PATTERN"')


@pytest.fixture(scope="module")
def topology() -> str:
    names = [*(f"n{number}" for number in range(NODES)), GONE]
    lines = [f"NodeName={name} NodeAddr=10.1.0.{11 + at} CPUs=2" for at, name in enumerate(names)]
    return topology_conf("\n".join([SETTING, *lines]))


@pytest.fixture(scope="module")
def slurm(topology: str) -> Iterator[BareSlurm]:
    with tempfile.TemporaryDirectory(prefix="topology-") as folder:
        (Path(folder) / "topology.conf").write_text(topology)
        with bare_slurm(Path(folder), nodes=NODES, settings=SETTING) as made:
            yield made


def racks(output: str) -> dict[str, str]:
    """Rack of each node of a job that ran ``SHOW``, as its launchers would find it."""
    return {
        name: find_rack({"SLURM_TOPOLOGY_ADDR": address, "SLURM_TOPOLOGY_ADDR_PATTERN": pattern})
        for name, address, pattern in (line.split() for line in output.splitlines())
    }


def leaf_of(shown: str) -> dict[str, str]:
    """Leaf switch of each node, from the output of ``scontrol show topology``."""
    leaves = re.findall(r"SwitchName=(\S+) Level=0 .*Nodes=(\S+)", shown)
    return {name: leaf for leaf, names in leaves for name in names.split(",")}


@pytest.mark.documented("HP-126")
def test_launchers_of_a_job_find_the_leaf_switches_that_slurm_shows(slurm: BareSlurm) -> None:
    leaves = leaf_of(slurm.run(["scontrol", "show", "topology"]))
    assert [leaves[f"n{number}"] == leaves[f"n{number + 1}"] for number in range(3)] == [True, False, True]
    assert racks(slurm.run(["srun", "-N4", *SHOW])) == {name: leaves[name] for name in ("n0", "n1", "n2", "n3")}


@pytest.mark.documented("HP-126")
def test_a_job_can_ask_for_one_leaf_switch(slurm: BareSlurm) -> None:
    found = racks(slurm.run(["srun", "-N2", "--switches=1", *SHOW]))
    assert len(found) == 2
    assert len(set(found.values())) == 1


def test_a_topology_that_names_a_missing_node_costs_no_other_node_its_jobs(slurm: BareSlurm) -> None:
    log = (slurm.folder / "log" / "slurmctld").read_text()
    assert f"Invalid hostnames in switch configuration: {GONE}" in log
    assert sorted(racks(slurm.run(["srun", f"-N{NODES}", *SHOW]))) == [f"n{number}" for number in range(NODES)]


# --- on the local HyperPod


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HyperPodLab]:
    with hyperpod_lab(tmp_path_factory.mktemp("hyperpod")) as made:
        described = made.create("lab", groups(made, workers=3))
        assert described["ClusterStatus"] == "InService", described.get("FailureMessage")
        yield made


def groups(lab: HyperPodLab, *, workers: int) -> list[object]:
    compute = lab.group("workers", count=workers, NodeType="Compute", PartitionNames=["train"])
    return [lab.group("head", NodeType="Controller"), {**compute, "InstanceType": "ml.p5.48xlarge"}]


@pytest.mark.documented("HP-125", "HP-127")
def test_the_topology_follows_a_cluster_that_grows_replaces_and_shrinks(lab: HyperPodLab) -> None:
    head = lab.node("lab", "head")

    def seen() -> dict[str, str]:
        """Leaf switch of each node, by slurmctld and by each slurmd."""
        nodes = sorted(set(ok(head, "sinfo", "-h", "-N", "-o", "%N").split()))
        leaves = leaf_of(ok(head, "scontrol", "show", "topology"))
        assert racks(ok(head, "srun", f"-N{len(nodes)}", *SHOW, timeout_s=60)) == leaves
        assert sorted(leaves) == nodes
        return leaves

    assert "TopologyPlugin          = topology/tree" in ok(head, "scontrol", "show", "config")
    before = seen()
    conf = "/opt/slurm/etc/topology.conf"
    stale = head.read_file(conf).decode().replace("Nodes=", "Nodes=ip-10-1-0-99,", 1)
    head.write_file(conf, stale.encode())
    ok(head, "scontrol", "reconfigure")
    assert "ip-10-1-0-99" in leaf_of(ok(head, "scontrol", "show", "topology"))

    lab.sagemaker.update_cluster(ClusterName="lab", InstanceGroups=groups(lab, workers=5))
    assert lab.settled("lab").get("FailureMessage") is None
    grown = seen()
    assert len(grown) == 5
    assert before.items() <= grown.items()

    old = min(lab.instances("lab", "workers"))
    lab.sagemaker.batch_replace_cluster_nodes(ClusterName="lab", NodeIds=[old])
    eventually(lambda: old not in (found := lab.instances("lab", "workers")) and set(found.values()) == {"Running"})
    assert seen() == grown

    lab.sagemaker.update_cluster(ClusterName="lab", InstanceGroups=groups(lab, workers=2))
    assert lab.settled("lab").get("FailureMessage") is None
    shrunk = seen()
    assert len(shrunk) == 2
    assert shrunk.items() <= grown.items()

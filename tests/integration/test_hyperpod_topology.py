"""A real Slurm with the topology that HyperPod writes: jobs see their leaf switch, and can ask for one switch."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bare_slurm import BareSlurm, bare_slurm

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


def racks(slurm: BareSlurm, *options: str) -> dict[str, str]:
    """Rack of each node of a job, as its launchers would find it."""
    found = (line.split() for line in slurm.run(["srun", *options, *SHOW]).splitlines())
    return {
        name: find_rack({"SLURM_TOPOLOGY_ADDR": address, "SLURM_TOPOLOGY_ADDR_PATTERN": pattern})
        for name, address, pattern in found
    }


@pytest.mark.documented("HP-126")
def test_launchers_of_a_job_find_the_leaf_switches_that_slurm_shows(slurm: BareSlurm) -> None:
    shown = dict(re.findall(r"SwitchName=(\S+) Level=0 .*Nodes=(\S+)", slurm.run(["scontrol", "show", "topology"])))
    assert list(shown.values()) == ["n0,n1", "n2,n3", f"n4,{GONE}"]
    leaf_of = {name: leaf for leaf, names in shown.items() for name in names.split(",")}
    assert racks(slurm, "-N4") == {name: leaf_of[name] for name in ("n0", "n1", "n2", "n3")}


@pytest.mark.documented("HP-126")
def test_a_job_can_ask_for_one_leaf_switch(slurm: BareSlurm) -> None:
    found = racks(slurm, "-N2", "--switches=1")
    assert len(found) == 2
    assert len(set(found.values())) == 1


def test_a_topology_that_names_a_missing_node_costs_no_other_node_its_jobs(slurm: BareSlurm) -> None:
    log = (slurm.folder / "log" / "slurmctld").read_text()
    assert f"Invalid hostnames in switch configuration: {GONE}" in log
    assert sorted(racks(slurm, f"-N{NODES}")) == [f"n{number}" for number in range(NODES)]

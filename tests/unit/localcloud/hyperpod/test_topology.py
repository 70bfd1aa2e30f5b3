"""Topology of a Slurm cluster: its plugin, from the instance types, and its switches, from the addresses."""

import re
from collections.abc import Iterable
from dataclasses import replace

import pytest

from holdfast.localcloud.hyperpod.model import Cluster, Group, Instance
from holdfast.localcloud.hyperpod.slurm import (
    MachineSize,
    merged,
    node_names,
    owned_lines,
    slurm_conf,
    topology_conf,
    topology_plugin,
)

MACHINE = MachineSize(cpus=2, memory_mib=2000)
P5, C5, GB200 = "ml.p5.48xlarge", "ml.c5.9xlarge", "ml.p6e-gb200.36xlarge"
NETWORK_NODE = r"nn-[0-9a-f]{17}"


def cluster(last_bytes: Iterable[int], *, instance_type: str = P5) -> Cluster:
    groups = (
        Group(name="head", instance_type=C5, slurm_role="Controller"),
        Group(name="workers", instance_type=instance_type, slurm_role="Compute"),
    )
    instances = [Instance(instance_id="i-head", group="head", address="10.1.0.10")]
    instances += [Instance(instance_id=f"i-{n}", group="workers", address=f"10.1.0.{n}") for n in last_bytes]
    return Cluster(arn="arn:x/abc", name="dev", status="InService", groups=groups, instances=tuple(instances))


def leaves(topology: str) -> dict[str, list[str]]:
    found = re.findall(r"^SwitchName=(\S+) Nodes=(\S+)$", topology, re.MULTILINE)
    return {switch: names.split(",") for switch, names in found}


@pytest.mark.documented("HP-125")
@pytest.mark.parametrize(
    ("types", "slurm", "plugin"),
    [
        ([P5], (22, 5), "topology/tree"),
        ([P5, "ml.trn2.48xlarge"], (22, 5), "topology/tree"),
        ([P5, GB200], (24, 11), "topology/tree"),
        ([GB200], (24, 11), "topology/block"),
        ([GB200], (22, 5), ""),
        ([P5, C5], (22, 5), ""),
        (["ml.unheard.of"], (22, 5), ""),
        ([], (22, 5), ""),
    ],
)
def test_the_plugin_follows_from_the_types_of_the_compute_groups(
    types: list[str], slurm: tuple[int, int], plugin: str
) -> None:
    assert topology_plugin(types, slurm=slurm) == plugin


@pytest.mark.documented("HP-125")
def test_the_type_of_the_controller_does_not_matter_and_a_cluster_without_topology_has_no_file() -> None:
    assert "TopologyPlugin=topology/tree" in slurm_conf(cluster([11]), machine=MACHINE).splitlines()
    for without in (cluster([11], instance_type=C5), cluster([])):
        flat = slurm_conf(without, machine=MACHINE)
        assert "TopologyPlugin" not in flat
        assert topology_conf(flat) == ""


@pytest.mark.documented("HP-126")
def test_neighbouring_addresses_share_a_leaf_below_one_root() -> None:
    topology = topology_conf(slurm_conf(cluster(range(11, 17)), machine=MACHINE))
    assert list(leaves(topology).values()) == [
        ["ip-10-1-0-11", "ip-10-1-0-12"],
        ["ip-10-1-0-13", "ip-10-1-0-14"],
        ["ip-10-1-0-15", "ip-10-1-0-16"],
    ]
    root, *others = topology.splitlines()
    names = [line.split()[0].removeprefix("SwitchName=") for line in (root, *others)]
    assert all(re.fullmatch(NETWORK_NODE, name) for name in names)
    children = [name for line in (root, *others) for name in re.findall(r"Switches=(\S+)", line)]
    assert sorted(",".join(children).split(",")) == sorted(names[1:]), "each switch but the root has one above it"


def test_a_node_keeps_its_leaf_when_others_come_and_go() -> None:
    before, after = (
        leaves(topology_conf(slurm_conf(cluster(nodes), machine=MACHINE))) for nodes in ((11, 12, 14), (12, 14, 99))
    )
    places = [{name: leaf for leaf, names in found.items() for name in names} for found in (before, after)]
    for name in ("ip-10-1-0-12", "ip-10-1-0-14"):
        assert places[0][name] == places[1][name]


@pytest.mark.documented("HP-127")
def test_a_node_that_no_longer_exists_is_in_neither_file_and_a_new_one_is_in_both() -> None:
    for nodes in ((11, 12, 13), (11, 13), (11, 13, 14)):
        conf = slurm_conf(cluster(nodes), machine=MACHINE)
        assert {name for names in leaves(topology_conf(conf)).values() for name in names} == node_names(conf)
    leaving = slurm_conf(cluster((11, 12)), machine=MACHINE, without=["i-12"])
    assert "ip-10-1-0-12" not in topology_conf(leaving)


@pytest.mark.documented("HP-127")
def test_an_edited_plugin_lasts_until_hyperpods_next_change() -> None:
    conf = slurm_conf(cluster([11]), machine=MACHINE)
    edited = conf.replace("TopologyPlugin=topology/tree", "TopologyPlugin=topology/none")
    assert owned_lines(edited) != owned_lines(conf)
    written = merged(present=edited, desired=conf)
    assert [line for line in written.splitlines() if line.startswith("Topology")] == ["TopologyPlugin=topology/tree"]


@pytest.mark.documented("HP-125")
def test_instances_of_an_ultra_server_are_a_block_of_at_most_eighteen() -> None:
    machine = replace(MACHINE, slurm=(24, 11))
    *blocks, sizes = topology_conf(
        slurm_conf(cluster(range(11, 38), instance_type=GB200), machine=machine)
    ).splitlines()
    assert [(line.split()[0], line.count("ip-")) for line in blocks] == [("BlockName=us1", 18), ("BlockName=us2", 9)]
    assert sizes == "BlockSizes=9"

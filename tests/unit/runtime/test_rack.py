"""Which rack a node is in: what the job says, or else what Slurm's topology plugin does."""

import pytest

from holdfast_runtime.launcher.settings import find_rack


@pytest.mark.parametrize(
    ("environment", "rack"),
    [
        ({}, ""),
        (
            {"HOLDFAST_RACK": "nn-7", "SLURM_TOPOLOGY_ADDR": "s1.n1", "SLURM_TOPOLOGY_ADDR_PATTERN": "switch.node"},
            "nn-7",
        ),
        # As jobs of real clusters have it: a tree of switches, and no plugin.
        (
            {
                "SLURM_TOPOLOGY_ADDR": "root_switch.CELL1.iswi1r4s0c1l1.belenos386",
                "SLURM_TOPOLOGY_ADDR_PATTERN": "switch.switch.switch.node",
            },
            "iswi1r4s0c1l1",
        ),
        ({"SLURM_TOPOLOGY_ADDR": "GPU71E4", "SLURM_TOPOLOGY_ADDR_PATTERN": "node"}, ""),
        ({"SLURM_TOPOLOGY_ADDR": "s1.node-1.example.com", "SLURM_TOPOLOGY_ADDR_PATTERN": "switch.node"}, "s1"),
    ],
    ids=["nothing", "said", "tree", "no plugin", "full name"],
)
def test_a_rack_is_what_is_said_or_the_leaf_switch(environment: dict[str, str], rack: str) -> None:
    assert find_rack(environment) == rack

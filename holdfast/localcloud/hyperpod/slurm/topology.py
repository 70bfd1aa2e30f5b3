"""
Network topology of a Slurm cluster, as HyperPod manages it with Slurm 24. Pure.

Source: SageMaker developer guide, "Using topology-aware scheduling in Amazon SageMaker HyperPod". Switches follow from
the addresses of nodes, so a node keeps its switch when others are added or removed and when it moves to another group.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address
from itertools import pairwise

from holdfast.catalog import instance_types

TREE, BLOCK = "topology/tree", "topology/block"
BLOCK_SINCE = (24, 5)
"""Version of Slurm with BlockSizes (topology.conf(5))."""
_LAYERS = (1 << 32, 64, 2)
"""Addresses below a switch, from the root to the leaf. EC2 describes three layers; their sizes are assumed."""
_ULTRA_SERVER = 18
"""Instances of an UltraServer."""
_PLUGIN = re.compile(r"^TopologyPlugin=(\S+)$", re.MULTILINE)
_NODE = re.compile(r"^NodeName=(\S+) NodeAddr=(\S+) ", re.MULTILINE)


def topology_plugin(types: Iterable[str], *, slurm: tuple[int, int]) -> str:
    """
    Return the plugin for compute groups of these instance types.

    Returns:
        Empty where one type has no topology, so that its nodes stay schedulable, and for blocks before Slurm 24.05.
    """
    found = {known.topology if (known := instance_types().get(one)) else "" for one in types}
    if not found or "" in found:
        return ""
    if found != {"block"}:
        return TREE
    return BLOCK if slurm >= BLOCK_SINCE else ""


def topology_conf(conf: str) -> str:
    """Return topology.conf for the nodes of this slurm.conf; empty where that names no plugin."""
    plugin = _PLUGIN.search(conf)
    if plugin is None:
        return ""
    # With one controller at .10, as in the environments, workers begin with a full leaf.
    places = {name: int(IPv4Address(address)) + 1 for name, address in _NODE.findall(conf)}
    lines = _blocks([*places]) if plugin[1] == BLOCK else _switches(places)
    return "\n".join(lines) + "\n"


def _switches(places: Mapping[str, int]) -> list[str]:
    below: dict[str, dict[str, None]] = {}
    for name, place in places.items():
        path = [*(_network_node(size, place // size) for size in _LAYERS), name]
        for switch, child in pairwise(path):
            below.setdefault(switch, {})[child] = None
    return [
        f"SwitchName={switch} {'Switches' if children.keys() <= below.keys() else 'Nodes'}={','.join(children)}"
        for switch, children in below.items()
    ]


def _network_node(size: int, number: int) -> str:
    """Return a name in the form of EC2's network nodes."""
    return f"nn-{hashlib.sha256(f'{size} {number}'.encode()).hexdigest()[:17]}"


def _blocks(names: Sequence[str]) -> list[str]:
    blocks = [names[first : first + _ULTRA_SERVER] for first in range(0, len(names), _ULTRA_SERVER)]
    return [
        *(f"BlockName=us{number} Nodes={','.join(block)}" for number, block in enumerate(blocks, start=1)),
        # Slurm requires that no block has fewer nodes.
        f"BlockSizes={len(blocks[-1])}",
    ]

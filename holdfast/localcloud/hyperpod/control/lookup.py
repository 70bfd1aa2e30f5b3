"""Lookup of a cluster's nodes from outside the control plane, also while it is down."""

import json
from pathlib import Path

from holdfast.localcloud.hyperpod.lifecycle import RESOURCE_CONFIG
from holdfast.localcloud.hyperpod.slurm import SLURM_CONF
from holdfast.localcloud.nodes import Fleet, Node


def controller_node(home: Path, *, cluster: str = "") -> Node | None:
    """Return the running node with the Slurm controller, or None. ``cluster``: default any."""
    for node in Fleet(home=home).nodes():
        if node.alive() and _is_controller(node) and cluster in ("", _cluster_of(node)):
            return node
    return None


def _is_controller(node: Node) -> bool:
    try:
        conf = node.read_file(SLURM_CONF).decode()
    except OSError:
        return False
    return f"SlurmctldHost={node.spec.hostname}(" in conf


def _cluster_of(node: Node) -> str:
    config = json.loads(node.read_file(RESOURCE_CONFIG))
    return str(config["ClusterConfig"]["ClusterName"])

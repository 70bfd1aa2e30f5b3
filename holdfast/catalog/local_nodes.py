"""Measured memory and CPU needs of local nodes."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOCAL_NODES_FILE = Path(__file__).with_name("local_nodes.json")


@dataclass(frozen=True, kw_only=True)
class LocalNodes:
    """
    Needs of one orchestrator.

    Args:
        base_mib: Local cloud, controller and deployment.
        node_mib: Each node.
        nodes_per_core: Nodes that start in parallel without failing their checks.
        source: Source and date of the figures.
    """

    base_mib: int
    node_mib: int
    nodes_per_core: int
    source: str
    date: str


@functools.cache
def local_nodes() -> Mapping[str, LocalNodes]:
    found = json.loads(LOCAL_NODES_FILE.read_text(encoding="utf-8"))
    return {name: LocalNodes(**figures) for name, figures in found.items()}

"""Memory and processors of the nodes of a local cloud, as they were measured."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOCAL_NODES_FILE = Path(__file__).with_name("local_nodes.json")


@dataclass(frozen=True, kw_only=True)
class LocalNodes:
    """
    Of one orchestrator.

    Args:
        base_mib: Of the local cloud, a controller and a deployment.
        node_mib: Of each node.
        nodes_per_core: How many come up beside each other without failing their own checks.
        source: Of the figures, with their date.
    """

    base_mib: int
    node_mib: int
    nodes_per_core: int
    source: str
    date: str


@functools.cache
def local_nodes() -> Mapping[str, LocalNodes]:
    """Orchestrator to figures."""
    found = json.loads(LOCAL_NODES_FILE.read_text(encoding="utf-8"))
    return {name: LocalNodes(**figures) for name, figures in found.items()}

"""Capacity of a machine for local nodes. Pure."""

from dataclasses import dataclass

from holdfast.catalog import LocalNodes

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """
    Capacity of a machine for one cluster.

    Args:
        figures: Of the cluster's orchestrator.
        memory_bytes: Available memory.
        cores: Cores of this process.
        running: Running nodes of this home; their memory is already taken.
    """

    figures: LocalNodes
    memory_bytes: int
    cores: int
    running: int = 0

    @property
    def by_memory(self) -> int:
        return self.running + max(0, (self.memory_bytes - self._base_bytes) // (self.figures.node_mib * MIB))

    @property
    def by_cores(self) -> int:
        return self.cores * self.figures.nodes_per_core

    def lacking(self, nodes: int) -> list[str]:
        """Reason why memory does not suffice; empty if it does."""
        if nodes <= self.by_memory:
            return []
        needed = (self._base_bytes + max(0, nodes - self.running) * self.figures.node_mib * MIB) / GIB
        return [
            f"a cluster of {nodes} nodes needs {needed:.1f} GiB of memory, {self.memory_bytes / GIB:.1f} GiB are "
            f"available, for {self.by_memory} nodes; end other programs, reduce the counts, or use a larger machine"
        ]

    def crowded(self, nodes: int) -> list[str]:
        """Warning about too few cores; empty if they suffice."""
        if nodes <= self.by_cores:
            return []
        return [
            f"{nodes} nodes on {self.cores} cores: {self.by_cores} come up within the time that their scripts have, "
            "so some may fail, and the stack with them"
        ]

    def __str__(self) -> str:
        return f"room for {min(self.by_memory, self.by_cores)} nodes"

    @property
    def _base_bytes(self) -> int:
        return 0 if self.running else self.figures.base_mib * MIB

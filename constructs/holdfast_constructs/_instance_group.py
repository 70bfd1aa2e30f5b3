"""An instance group as the constructs see it: what the network is sized from and the cluster is made of."""

from dataclasses import dataclass
from typing import Literal

from holdfast.catalog import instance_types


@dataclass(frozen=True, kw_only=True)
class InstanceGroup:
    """Nodes of one kind that are scaled and replaced as a unit."""

    name: str
    instance_type: str
    """Such as ``ml.p5.48xlarge``."""
    instance_count: int
    node_type: Literal["Controller", "Login", "Compute"]
    """What Slurm makes of the group. It cannot be changed later."""
    partition: str | None = None
    """Default: none, and a Compute group must have one."""
    threads_per_core: Literal[1, 2] = 1
    """Default: 1, no hyper-threading."""
    volume_gib: int | None = None
    """Default: no extra EBS volume."""

    def __post_init__(self) -> None:
        if self.instance_type not in instance_types():
            raise ValueError(
                f"instance group '{self.name}': got instance type '{self.instance_type}'; "
                "allowed: a type of holdfast.catalog.instance_types()"
            )
        if (self.node_type == "Compute") != (self.partition is not None):
            raise ValueError(
                f"instance group '{self.name}': got partition {self.partition!r} on node type {self.node_type}; "
                "allowed: a partition on Compute groups and on no other"
            )

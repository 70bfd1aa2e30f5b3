"""What is known about each instance type that HyperPod offers; the data and its source are in the JSON beside it."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

DATA = Path(__file__).with_name("instance_types.json")


class Facts(TypedDict):
    """One line of the data file."""

    vcpus: int
    memory_gib: int
    accelerator: str
    accelerators: int
    efa_interfaces: int


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """An instance type of HyperPod."""

    name: str
    """With the prefix of SageMaker: ``ml.p5.48xlarge``."""
    vcpus: int
    """Virtual CPUs with two threads per core, where the type has them."""
    memory_gib: int
    accelerator: str
    """The device's name, such as ``H100``; empty on a type without one."""
    accelerators: int
    """GPUs or Trainium devices."""
    efa_interfaces: int
    """Most Elastic Fabric Adapters an instance can have; 0 where EFA is not supported."""

    @property
    def ip_addresses(self) -> int:
        """
        Subnet addresses that one node takes under Slurm: one per network interface.

        HyperPod attaches an interface per EFA. AWS documents the result for one type: 32 per P5, which has 32
        (SageMaker developer guide, "SageMaker HyperPod prerequisites"). The rest follows from the same rule.
        """
        return max(1, self.efa_interfaces)


@functools.cache
def instance_types() -> Mapping[str, InstanceType]:
    """All instance types by name."""
    rows: dict[str, Facts] = json.loads(DATA.read_text())["instance_types"]
    return {name: InstanceType(name=name, **facts) for name, facts in rows.items()}

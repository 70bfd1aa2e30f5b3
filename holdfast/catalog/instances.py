"""Instance types of HyperPod; data and source in the JSON."""

import functools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

INSTANCE_TYPES_FILE = Path(__file__).with_name("instance_types.json")

Orchestrator = Literal["slurm", "eks"]
Topology = Literal["tree", "block", ""]

_TREE_FAMILIES = frozenset(
    {"g6e", "g7e", "p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300", "trn1", "trn1n", "trn2", "trn2u"}
)
_ULTRA_SERVER_FAMILIES = frozenset({"p6e-gb200"})


class Facts(TypedDict):
    vcpus: int
    threads_per_core: int
    memory_gib: int
    accelerator: str
    accelerators: int
    efa_interfaces: int
    ipv4_per_interface: int
    accelerator_mib: int
    network_gbps: float
    card_gbps: float


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    name: str
    """With the prefix of SageMaker: ``ml.p5.48xlarge``."""
    vcpus: int
    """Virtual CPUs with two threads per core, where the type has them."""
    threads_per_core: int
    """Threads that each core has: 1 or 2."""
    memory_gib: int
    accelerator: str
    """The device's name, such as ``H100``; empty on a type without one."""
    accelerators: int
    """GPUs or Trainium devices."""
    efa_interfaces: int
    """Most Elastic Fabric Adapters an instance can have; 0 where EFA is not supported."""

    ipv4_per_interface: int
    """Most private IPv4 addresses that one network interface can have."""
    accelerator_mib: int
    """Memory of each device; 0 for none, and where it is not known."""
    network_gbps: float
    """Of all network cards together; 0 where it is not known."""
    card_gbps: float
    """Of one network card, and so of one IP address; 0 where it is not known."""

    @property
    def is_arm(self) -> bool:
        """True for Graviton and Grace: a g after the generation, as in m7g, or GB as in p6e-gb200."""
        return re.match(r"ml\.([a-z]+\d+g|.*-gb\d)", self.name) is not None

    @property
    def has_neuron(self) -> bool:
        """True if its devices are Trainium or Inferentia."""
        return self.accelerator.startswith(("Trainium", "Inferentia"))

    @property
    def topology(self) -> Topology:
        """
        Network topology that HyperPod configures in Slurm: block for UltraServers; empty where EC2 describes none.

        Sources: EC2 user guide, "Prerequisites for Amazon EC2 topology", and SageMaker developer guide, "Using
        topology-aware scheduling in Amazon SageMaker HyperPod", as of 2026-09.
        """
        family = self.name.split(".")[1]
        return "block" if family in _ULTRA_SERVER_FAMILIES else "tree" if family in _TREE_FAMILIES else ""

    def addresses(self, orchestrator: Orchestrator) -> int:
        """
        Subnet addresses of one node.

        HyperPod attaches an interface per EFA. Under Slurm each has one address; under EKS the first has the type's
        maximum, for pods. AWS documents one type: 32 and 81 per P5, 50 of them on the first interface (SageMaker
        developer guide, "SageMaker HyperPod prerequisites"). The 14 pods seen on ml.g5.xlarge agree (issue 142 of
        awslabs/ai-on-sagemaker-hyperpod).
        """
        first = self.ipv4_per_interface if orchestrator == "eks" else 1
        return first + max(1, self.efa_interfaces) - 1


@functools.cache
def instance_types() -> Mapping[str, InstanceType]:
    rows: dict[str, Facts] = json.loads(INSTANCE_TYPES_FILE.read_text())["instance_types"]
    return {name: InstanceType(name=name, **facts) for name, facts in rows.items()}


def known_types(names: Iterable[str]) -> list[InstanceType]:
    """Return the types of these names; names that the catalogue lacks are left out."""
    known = instance_types()
    return [known[name] for name in names if name in known]

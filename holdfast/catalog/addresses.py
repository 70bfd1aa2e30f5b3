"""Addresses that a cluster needs in its subnet, which cannot grow later."""

import math
from collections.abc import Iterable

from holdfast.catalog.instances import Orchestrator, instance_types

RESERVED_BY_AWS = 5
"""The first four addresses and the last of every subnet (Amazon VPC user guide, "Subnet CIDR blocks")."""

OTHER_INTERFACES = 32
"""Our choice: room for the network interfaces of file systems, and of the dozen endpoints that a closed network has."""

REPLACED_AT_ONCE = 0.1
"""Our choice: this part of each group, and at least one node, is there twice while nodes are being replaced."""

LARGEST_SUBNET, SMALLEST_SUBNET = 16, 28
"""Prefix lengths that a VPC and a subnet can have (Amazon VPC user guide)."""


def addresses_needed(groups: Iterable[tuple[str, int]], *, orchestrator: Orchestrator = "slurm") -> int:
    """
    Addresses that a cluster's subnet needs, AWS's reserved ones included.

    Args:
        groups: Instance type and number of nodes of each instance group.
        orchestrator: Default: "slurm". Under "eks" pods need addresses too.
    """
    total = RESERVED_BY_AWS + OTHER_INTERFACES
    for instance_type, count in groups:
        if count:
            total += (count + math.ceil(count * REPLACED_AT_ONCE)) * instance_types()[instance_type].addresses(
                orchestrator
            )
    return total


def prefix_length_for(addresses: int) -> int:
    """Prefix length of the smallest sufficient subnet; below 16 if none is."""
    return min(SMALLEST_SUBNET, 32 - math.ceil(math.log2(max(1, addresses))))

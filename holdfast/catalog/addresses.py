"""How many addresses a cluster takes from its subnet. A subnet cannot grow later, so it is judged before it is made."""

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
    Addresses that the subnet of a cluster must have, what AWS reserves included.

    Args:
        groups: Instance type and number of nodes of each instance group.
        orchestrator: Default: "slurm". Under "eks" a node's pods need addresses too.
    """
    total = RESERVED_BY_AWS + OTHER_INTERFACES
    for instance_type, count in groups:
        if count:
            total += (count + math.ceil(count * REPLACED_AT_ONCE)) * instance_types()[instance_type].addresses(
                orchestrator
            )
    return total


def prefix_length_for(addresses: int) -> int:
    """The prefix length of the smallest subnet with so many addresses; below 16 when no subnet can have them."""
    return min(SMALLEST_SUBNET, 32 - math.ceil(math.log2(max(1, addresses))))

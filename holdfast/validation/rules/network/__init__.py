"""Rules about subnets, security groups, addresses, EFA and ways through a VPC (2xx)."""

from holdfast.validation.rules.network import (  # noqa: F401 - each registers its rules
    acls,
    addresses,
    efa,
    endpoints,
    routes,
    subnets,
    templates,
    vpcs,
)
from holdfast.validation.rules.network.addresses import block_of
from holdfast.validation.rules.network.endpoints import ingress_of, lets, node_groups
from holdfast.validation.rules.network.subnets import DUMMY_ZONES, vpc_of

__all__ = ["DUMMY_ZONES", "block_of", "ingress_of", "lets", "node_groups", "vpc_of"]

"""VPC of a cluster: zone, subnets, security group, endpoints."""

from holdfast_constructs.network.endpoints import SERVICES
from holdfast_constructs.network.vpc import HyperPodNetwork, IHyperPodNetwork

__all__ = ["SERVICES", "HyperPodNetwork", "IHyperPodNetwork"]

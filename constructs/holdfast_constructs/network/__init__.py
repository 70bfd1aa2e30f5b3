"""The VPC of a cluster, its zone, its subnets and security group, and the endpoints that stand for a way out."""

from holdfast_constructs.network.endpoints import SERVICES
from holdfast_constructs.network.vpc import HyperPodNetwork, IHyperPodNetwork

__all__ = ["SERVICES", "HyperPodNetwork", "IHyperPodNetwork"]

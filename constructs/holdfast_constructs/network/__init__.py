"""VPC of a cluster: zone, subnets, security group, endpoints."""

from holdfast_constructs.network.vpc import HyperPodNetwork, IHyperPodNetwork

__all__ = ["HyperPodNetwork", "IHyperPodNetwork"]

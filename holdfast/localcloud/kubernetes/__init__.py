"""Real Kubernetes behind the embedded EKS: binaries, control planes, nodes, access."""

from holdfast.localcloud.kubernetes.binaries import Binaries, find_binaries
from holdfast.localcloud.kubernetes.clusters import Clusters, ClusterState
from holdfast.localcloud.kubernetes.model import EksCluster, parse_eks_cluster
from holdfast.localcloud.kubernetes.nodes import Member, Parts, Taint
from holdfast.localcloud.kubernetes.serving import Account, node_root

__all__ = [
    "Account",
    "Binaries",
    "ClusterState",
    "Clusters",
    "EksCluster",
    "Member",
    "Parts",
    "Taint",
    "find_binaries",
    "node_root",
    "parse_eks_cluster",
]

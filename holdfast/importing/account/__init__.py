"""Requests to AWS: the environment of a stack, and a cluster with its resources."""

from holdfast.importing.account.counts import count_remarks, live_counts
from holdfast.importing.account.deployed import NOTHING_DEPLOYED, DeployedStack, deployed_environment
from holdfast.importing.account.observed import ObservedCluster, file_system_id, mounts, read_cluster

__all__ = [
    "NOTHING_DEPLOYED",
    "DeployedStack",
    "ObservedCluster",
    "count_remarks",
    "deployed_environment",
    "file_system_id",
    "live_counts",
    "mounts",
    "read_cluster",
]

"""Requests to AWS: the environment of a stack, and a cluster with its resources."""

from holdfast.importing.account.deployed import NOTHING_DEPLOYED, Deployed, deployed_environment
from holdfast.importing.account.observed import Observed, file_system_id, mounts, read_cluster

__all__ = [
    "NOTHING_DEPLOYED",
    "Deployed",
    "Observed",
    "deployed_environment",
    "file_system_id",
    "mounts",
    "read_cluster",
]

"""Import from AWS: the environment of a stack, and environment files of existing clusters."""

from holdfast.importing.account import (
    NOTHING_DEPLOYED,
    DeployedStack,
    ObservedCluster,
    count_remarks,
    deployed_environment,
    live_counts,
    read_cluster,
)
from holdfast.importing.conversion import from_observed, from_samples
from holdfast.importing.draft import PARTS, Draft, Part, render

__all__ = [
    "NOTHING_DEPLOYED",
    "PARTS",
    "DeployedStack",
    "Draft",
    "ObservedCluster",
    "Part",
    "count_remarks",
    "deployed_environment",
    "from_observed",
    "from_samples",
    "live_counts",
    "read_cluster",
    "render",
]

"""Software on the nodes of a cluster on EKS: storage drivers, operators, task governance, collectors, health agent."""

from holdfast_constructs.eks_addons.health_agent import HealthAgent
from holdfast_constructs.eks_addons.job_operator import JobOperator
from holdfast_constructs.eks_addons.node_pools import NODE_POOLS_CHART, NodePool, NodePools
from holdfast_constructs.eks_addons.observability import ContainerInsights, ObservabilityAddon
from holdfast_constructs.eks_addons.operators import (
    InstanceQuota,
    PriorityClass,
    TaskGovernance,
    Team,
    TrainingOperator,
)
from holdfast_constructs.eks_addons.storage import FsxCsiDriver, LustreVolume, volume_values

__all__ = [
    "NODE_POOLS_CHART",
    "ContainerInsights",
    "FsxCsiDriver",
    "HealthAgent",
    "InstanceQuota",
    "JobOperator",
    "LustreVolume",
    "NodePool",
    "NodePools",
    "ObservabilityAddon",
    "PriorityClass",
    "TaskGovernance",
    "Team",
    "TrainingOperator",
    "volume_values",
]

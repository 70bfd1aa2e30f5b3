"""
The environment file: the only place where a cluster is described.

``load`` gives a frozen ``Environment`` or an ``EnvironmentFileError`` with every problem and its line. Whether its
values are possible together is judged in ``holdfast.validation``.
"""

from holdfast.config._cluster import (
    AutoPatch,
    BatchSize,
    Cluster,
    Deployment,
    GroupSlurm,
    InstanceGroup,
    OverrideVpc,
    RestrictedEnvironment,
    RestrictedInstanceGroup,
    RestrictedLustre,
    ScheduledUpdate,
    Taint,
    TieredStorage,
)
from holdfast.config._existing import (
    ExistingBucket,
    ExistingEks,
    ExistingHome,
    ExistingLustre,
    LifecycleBucket,
    LifeCycleConfig,
)
from holdfast.config._lifecycle_mode import LifecycleMode, mode_of
from holdfast.config._load import load
from holdfast.config._models import Encryption, Environment, Goodput, Suppression
from holdfast.config._network import ExistingNetwork, Network
from holdfast.config._nodes import Images, Lifecycle, StandIns, TrainingImage, User
from holdfast.config._observability import Grafana, Observability
from holdfast.config._orchestrators import Accounting, Eks, InstanceQuota, PriorityClass, Slurm, TaskGovernance, Team
from holdfast.config._problems import EnvironmentFileError, Problem
from holdfast.config._storage import Dataset, Home, Lustre, Storage

__all__ = [
    "Accounting",
    "AutoPatch",
    "BatchSize",
    "Cluster",
    "Dataset",
    "Deployment",
    "Eks",
    "Encryption",
    "Environment",
    "EnvironmentFileError",
    "ExistingBucket",
    "ExistingEks",
    "ExistingHome",
    "ExistingLustre",
    "ExistingNetwork",
    "Goodput",
    "Grafana",
    "GroupSlurm",
    "Home",
    "Images",
    "InstanceGroup",
    "InstanceQuota",
    "LifeCycleConfig",
    "Lifecycle",
    "LifecycleBucket",
    "LifecycleMode",
    "Lustre",
    "Network",
    "Observability",
    "OverrideVpc",
    "PriorityClass",
    "Problem",
    "RestrictedEnvironment",
    "RestrictedInstanceGroup",
    "RestrictedLustre",
    "ScheduledUpdate",
    "Slurm",
    "StandIns",
    "Storage",
    "Suppression",
    "Taint",
    "TaskGovernance",
    "Team",
    "TieredStorage",
    "TrainingImage",
    "User",
    "load",
    "mode_of",
]

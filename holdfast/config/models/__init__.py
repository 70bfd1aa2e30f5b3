"""Sections of the environment file: shape only. Rules are in holdfast.validation."""

from holdfast.config.models.cluster import (
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
from holdfast.config.models.docstrings import meanings, property_of
from holdfast.config.models.environment import Encryption, Environment, Goodput, Suppression
from holdfast.config.models.existing import (
    ExistingBucket,
    ExistingEks,
    ExistingHome,
    ExistingLustre,
    LifecycleBucket,
    LifeCycleConfig,
)
from holdfast.config.models.health import Health
from holdfast.config.models.lifecycle_mode import LifecycleMode, mode_of
from holdfast.config.models.network import ExistingNetwork, Network
from holdfast.config.models.nodes import Images, ImageSource, Lifecycle, Sessions, StandIns, User
from holdfast.config.models.observability import Grafana, Observability
from holdfast.config.models.orchestrators import (
    Accounting,
    Eks,
    InstanceQuota,
    NodePool,
    NodePoolLimits,
    PriorityClass,
    Slurm,
    TaskGovernance,
    Team,
)
from holdfast.config.models.storage import Dataset, Home, Lustre, Storage

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
    "ExistingBucket",
    "ExistingEks",
    "ExistingHome",
    "ExistingLustre",
    "ExistingNetwork",
    "Goodput",
    "Grafana",
    "GroupSlurm",
    "Health",
    "Home",
    "ImageSource",
    "Images",
    "InstanceGroup",
    "InstanceQuota",
    "LifeCycleConfig",
    "Lifecycle",
    "LifecycleBucket",
    "LifecycleMode",
    "Lustre",
    "Network",
    "NodePool",
    "NodePoolLimits",
    "Observability",
    "OverrideVpc",
    "PriorityClass",
    "RestrictedEnvironment",
    "RestrictedInstanceGroup",
    "RestrictedLustre",
    "ScheduledUpdate",
    "Sessions",
    "Slurm",
    "StandIns",
    "Storage",
    "Suppression",
    "Taint",
    "TaskGovernance",
    "Team",
    "TieredStorage",
    "User",
    "meanings",
    "mode_of",
    "property_of",
]

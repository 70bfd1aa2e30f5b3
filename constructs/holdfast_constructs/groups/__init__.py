"""Instance groups and their options as values."""

from holdfast_constructs.groups.instance import InstanceGroup, LifecycleMode
from holdfast_constructs.groups.options import (
    AutoPatch,
    BatchSize,
    Deployment,
    EbsVolume,
    OverrideVpc,
    ScheduledUpdate,
    Taint,
)
from holdfast_constructs.groups.restricted import RestrictedEnvironment, RestrictedInstanceGroup, RestrictedLustre

__all__ = [
    "AutoPatch",
    "BatchSize",
    "Deployment",
    "EbsVolume",
    "InstanceGroup",
    "LifecycleMode",
    "OverrideVpc",
    "RestrictedEnvironment",
    "RestrictedInstanceGroup",
    "RestrictedLustre",
    "ScheduledUpdate",
    "Taint",
]

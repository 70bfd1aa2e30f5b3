"""Deployment of stacks: state, plan, engine, and work on one resource. Resource types are in `resources`."""

from holdfast.localcloud.aws.cloudformation.deployment.engine import Engine
from holdfast.localcloud.aws.cloudformation.deployment.plan import (
    ResourceStep,
    attributes_used,
    change,
    desired,
    parameters_of_outputs,
    removal,
    retained,
    step,
    with_tags,
)
from holdfast.localcloud.aws.cloudformation.deployment.store import (
    PAUSED,
    STABLE,
    ChangeSet,
    DeploymentTarget,
    Resource,
    Stack,
    StackStore,
)
from holdfast.localcloud.aws.cloudformation.deployment.surroundings import Surroundings
from holdfast.localcloud.aws.cloudformation.deployment.worker import system_tags

__all__ = [
    "PAUSED",
    "STABLE",
    "ChangeSet",
    "DeploymentTarget",
    "Engine",
    "Resource",
    "ResourceStep",
    "Stack",
    "StackStore",
    "Surroundings",
    "attributes_used",
    "change",
    "desired",
    "parameters_of_outputs",
    "removal",
    "retained",
    "step",
    "system_tags",
    "with_tags",
]

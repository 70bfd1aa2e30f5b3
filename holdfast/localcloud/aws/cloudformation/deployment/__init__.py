"""Deployment of stacks: state, plan, engine, and work on one resource. Resource types are in `resources`."""

from holdfast.localcloud.aws.cloudformation.deployment.engine import Engine
from holdfast.localcloud.aws.cloudformation.deployment.plan import (
    Step,
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
    Resource,
    Stack,
    Store,
    Target,
)
from holdfast.localcloud.aws.cloudformation.deployment.surroundings import Surroundings
from holdfast.localcloud.aws.cloudformation.deployment.worker import system_tags

__all__ = [
    "PAUSED",
    "STABLE",
    "ChangeSet",
    "Engine",
    "Resource",
    "Stack",
    "Step",
    "Store",
    "Surroundings",
    "Target",
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

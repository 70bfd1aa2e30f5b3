"""CloudFormation properties of settings, for the L1s of constructs and for environment files."""

from holdfast.validation.cloudformation import Properties
from holdfast.validation.translation.cluster import accounting_database, cluster, eks_orchestrator, slurm_orchestrator
from holdfast.validation.translation.file_systems import lustre, open_zfs
from holdfast.validation.translation.groups import (
    deployment,
    ebs_volume,
    instance_group,
    life_cycle_config,
    mount,
    scheduled_update,
    vpc_config,
)
from holdfast.validation.translation.properties import Sourced, properties_of
from holdfast.validation.translation.sessions import session_document

__all__ = [
    "Properties",
    "Sourced",
    "accounting_database",
    "cluster",
    "deployment",
    "ebs_volume",
    "eks_orchestrator",
    "instance_group",
    "life_cycle_config",
    "lustre",
    "mount",
    "open_zfs",
    "properties_of",
    "scheduled_update",
    "session_document",
    "slurm_orchestrator",
    "vpc_config",
]

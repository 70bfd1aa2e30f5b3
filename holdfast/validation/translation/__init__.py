"""CloudFormation properties of settings, for the L1s of constructs and for environment files."""

from holdfast.validation.cloudformation import Properties
from holdfast.validation.translation.cluster import cluster, eks_orchestrator, slurm_orchestrator
from holdfast.validation.translation.eks import eks_cluster
from holdfast.validation.translation.file_systems import lustre, open_zfs
from holdfast.validation.translation.governance import compute_quota, scheduler_config
from holdfast.validation.translation.groups import ebs_volume, instance_group, mount
from holdfast.validation.translation.properties import Sourced, properties_of
from holdfast.validation.translation.sessions import session_document

__all__ = [
    "Properties",
    "Sourced",
    "cluster",
    "compute_quota",
    "ebs_volume",
    "eks_cluster",
    "eks_orchestrator",
    "instance_group",
    "lustre",
    "mount",
    "open_zfs",
    "properties_of",
    "scheduler_config",
    "session_document",
    "slurm_orchestrator",
]

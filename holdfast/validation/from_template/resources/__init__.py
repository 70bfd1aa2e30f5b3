"""Readers from resources to parts of a deployment, one per AWS area."""

from holdfast.validation.from_template.resources.cluster import ClusterReader
from holdfast.validation.from_template.resources.eks import CDK_EKS_CLUSTER, EKS_CLUSTER
from holdfast.validation.from_template.resources.iam import RoleReader
from holdfast.validation.from_template.resources.network import NetworkReader
from holdfast.validation.from_template.resources.updates import UpdateReader

__all__ = [
    "CDK_EKS_CLUSTER",
    "EKS_CLUSTER",
    "ClusterReader",
    "NetworkReader",
    "RoleReader",
    "UpdateReader",
]

"""Readers from resources to parts of a deployment, one per AWS area."""

from holdfast.validation.readers.cluster import ClusterReader
from holdfast.validation.readers.eks import CDK_EKS_CLUSTER
from holdfast.validation.readers.extensions import extensions
from holdfast.validation.readers.iam import RoleReader
from holdfast.validation.readers.network import NetworkReader
from holdfast.validation.readers.sessions import DOCUMENT, session_documents
from holdfast.validation.readers.updates import UpdateReader

__all__ = [
    "CDK_EKS_CLUSTER",
    "DOCUMENT",
    "ClusterReader",
    "NetworkReader",
    "RoleReader",
    "UpdateReader",
    "extensions",
    "session_documents",
]

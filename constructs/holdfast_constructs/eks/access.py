"""Who may ask an EKS cluster, and what a chart has to know of one."""

from collections.abc import Sequence
from typing import Literal, Protocol

from aws_cdk import aws_iam as iam
from constructs import IDependable

AccessPolicy = Literal[
    "AmazonEKSClusterAdminPolicy", "AmazonEKSAdminPolicy", "AmazonEKSEditPolicy", "AmazonEKSViewPolicy"
]


class IEksAccess(Protocol):
    """An EKS cluster that lets roles in."""

    cluster_name: str
    cluster_arn: str

    def grant_access(
        self, role: iam.IRole, *, policy: AccessPolicy, namespaces: Sequence[str] | None = None
    ) -> IDependable:
        """Let ``role`` use the Kubernetes API."""
        ...

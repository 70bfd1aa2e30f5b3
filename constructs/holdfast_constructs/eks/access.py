from collections.abc import Sequence
from typing import Literal, Protocol

from aws_cdk import aws_iam as iam
from constructs import IDependable

AccessPolicy = Literal[
    "AmazonEKSClusterAdminPolicy", "AmazonEKSAdminPolicy", "AmazonEKSEditPolicy", "AmazonEKSViewPolicy"
]


class IEksAccess(Protocol):
    """EKS cluster that can grant access to roles."""

    cluster_name: str
    cluster_arn: str

    def grant_access(
        self, role: iam.IRole, *, policy: AccessPolicy, namespaces: Sequence[str] | None = None
    ) -> IDependable:
        """Allow ``role`` to use the Kubernetes API."""
        ...

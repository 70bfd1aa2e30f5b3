"""Interface of lifecycle scripts in S3."""

from typing import Protocol

from aws_cdk import aws_iam as iam
from constructs import IConstruct


class ILifecycleScripts(IConstruct, Protocol):
    """Scripts of new nodes: a ``LifecycleBundle``, or existing ones."""

    on_create: str | None
    """What nodes of groups in mode custom run; None when there is nothing for them."""
    on_init_complete: str | None
    """What nodes of groups in mode extension run; None when there is nothing for them."""
    source_s3_uri: str

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant: ...

    def tell(self, name: str, value: object) -> None:
        """Put a JSON file of the cluster's data beside the scripts; imported ones stay unchanged."""
        ...

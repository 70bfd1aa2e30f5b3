"""Lifecycle scripts in S3, whether this app puts them there or not."""

from typing import Protocol

from aws_cdk import aws_iam as iam
from constructs import IConstruct


class ILifecycleScripts(IConstruct, Protocol):
    """What HyperPod runs on a new node: a ``LifecycleBundle``, or scripts that are there already."""

    on_create: str | None
    """What nodes of groups in mode custom run; None when there is nothing for them."""
    on_init_complete: str | None
    """What nodes of groups in mode extension run; None when there is nothing for them."""
    source_s3_uri: str

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow ``grantee`` to read the scripts."""
        ...

    def tell(self, name: str, value: object) -> None:
        """Put what only the cluster knows beside the scripts, as a JSON file; imported scripts stay as they are."""
        ...

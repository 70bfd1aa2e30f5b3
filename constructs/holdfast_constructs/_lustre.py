"""An FSx for Lustre file system and its links to S3."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_s3 as s3
from constructs import Construct

FileEvent = Literal["NEW", "CHANGED", "DELETED"]


@dataclass(frozen=True, kw_only=True)
class DataRepository:
    """A folder of the file system that is linked with a prefix of a bucket."""

    name: str
    """Becomes part of the association's logical id: changing it replaces the association."""
    bucket: s3.IBucket
    prefix: str
    """Without slashes at its ends."""
    file_system_path: str
    """Begins with ``/``."""
    auto_import: Sequence[FileEvent] = ()
    """Default: changes of objects are not imported by themselves."""
    auto_export: Sequence[FileEvent] = ()
    """Default: changes of files are not exported by themselves."""


class LustreFileSystem(Construct):
    """A file system of deployment type PERSISTENT_2 on SSD, compressed with LZ4, encrypted, retained by default."""

    file_system_id: str
    dns_name: str
    mount_name: str

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        subnet: ec2.ISubnet,
        security_group: ec2.ISecurityGroup,
        storage_capacity_gib: int,
        per_unit_storage_throughput: Literal[125, 250, 500, 1000],
        metadata_iops: int | None = None,
        data_repositories: Sequence[DataRepository] = (),
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN,
    ) -> None:
        """
        Define a file system.

        Args:
            subnet: The nodes' subnet: what crosses zones is slow and costs.
            security_group: Must let its members talk to each other, such as ``HyperPodNetwork.security_group``.
            storage_capacity_gib: 1200, or a multiple of 2400.
            per_unit_storage_throughput: MB/s per TiB.
            metadata_iops: Default: no metadata configuration, the rate follows from the capacity.
            data_repositories: Default: no links to S3.
            removal_policy: Default: RETAIN, file system and links outlive their stack.
        """
        super().__init__(scope, construct_id)
        metadata = fsx.CfnFileSystem.MetadataConfigurationProperty(mode="USER_PROVISIONED", iops=metadata_iops)
        resource = fsx.CfnFileSystem(
            self,
            "Resource",
            file_system_type="LUSTRE",
            file_system_type_version="2.15",
            storage_capacity=storage_capacity_gib,
            storage_type="SSD",
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[security_group.security_group_id],
            lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(
                deployment_type="PERSISTENT_2",
                per_unit_storage_throughput=per_unit_storage_throughput,
                data_compression_type="LZ4",
                metadata_configuration=None if metadata_iops is None else metadata,
            ),
        )
        resource.apply_removal_policy(removal_policy)
        self.file_system_id = resource.ref
        self.dns_name = resource.attr_dns_name
        self.mount_name = resource.attr_lustre_mount_name
        self._associate(data_repositories, removal_policy)

    def _associate(self, repositories: Sequence[DataRepository], removal_policy: RemovalPolicy) -> None:
        previous: fsx.CfnDataRepositoryAssociation | None = None
        for repository in repositories:
            association = fsx.CfnDataRepositoryAssociation(
                self,
                f"Association-{repository.name}",
                file_system_id=self.file_system_id,
                file_system_path=repository.file_system_path,
                data_repository_path=f"s3://{repository.bucket.bucket_name}/{repository.prefix}",
                batch_import_meta_data_on_create=bool(repository.auto_import),
                s3=fsx.CfnDataRepositoryAssociation.S3Property(
                    auto_import_policy=_import_policy(repository.auto_import),
                    auto_export_policy=_export_policy(repository.auto_export),
                ),
            )
            association.apply_removal_policy(removal_policy)
            association.node.add_dependency(repository.bucket)
            if previous is not None:
                # One after the other: FSx works on one association at a time, and the others can time out.
                association.add_resource_dependency(previous)
            previous = association


def _import_policy(
    events: Sequence[FileEvent],
) -> fsx.CfnDataRepositoryAssociation.AutoImportPolicyProperty | None:
    return fsx.CfnDataRepositoryAssociation.AutoImportPolicyProperty(events=list(events)) if events else None


def _export_policy(
    events: Sequence[FileEvent],
) -> fsx.CfnDataRepositoryAssociation.AutoExportPolicyProperty | None:
    return fsx.CfnDataRepositoryAssociation.AutoExportPolicyProperty(events=list(events)) if events else None

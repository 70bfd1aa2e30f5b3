"""FSx for Lustre file system and its data repository associations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from aws_cdk import RemovalPolicy, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from holdfast.validation import translation
from holdfast_constructs.cdk import arguments, url_suffix
from holdfast_constructs.storage.file_system_rules import usual_dns_name, wait_for_rules

FileEvent = Literal["NEW", "CHANGED", "DELETED"]
FSX_ROLE = "s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-*"


@dataclass(frozen=True, kw_only=True)
class DataRepositoryAssociation:
    """
    Synchronization of a folder with a prefix of a bucket.

    Files are loaded lazily: names and sizes at once, contents on first read, or when lifecycle scripts request them
    (``preload`` in their configuration).
    """

    name: str
    """Becomes part of the association's logical id: changing it replaces the association."""
    bucket: s3.IBucket
    """A key of this app is extended for FSx; the policy of any other key must allow it already."""
    prefix: str
    """Without slashes at its ends."""
    file_system_path: str
    """Begins with ``/``."""
    auto_import: Sequence[FileEvent] = ()
    """Default: changes of objects are not imported by themselves."""
    auto_export: Sequence[FileEvent] = ()
    """Default: changes of files are not exported by themselves."""
    import_on_create: bool | None = None
    """Whether the names of what the bucket has already appear at once. Changing it replaces the association. Default:
    when ``auto_import`` is given."""


class ILustreFileSystem(IConstruct, Protocol):
    """FSx for Lustre file system, owned or imported."""

    file_system_id: str
    dns_name: str
    mount_name: str
    efa: bool

    def grant_describe(self, grantee: iam.IGrantable) -> iam.Grant:
        """
        Allow ``grantee`` to see whether the file system has EFA.

        Without it, nodes silently mount an EFA-enabled file system over TCP. A Slurm cluster gets it by mounting; on
        EKS, where pods mount, grant it to the cluster, and give a closed network the endpoint ``fsx``.
        """
        ...


class _LustreBase(Construct):
    file_system_id: str
    dns_name: str
    mount_name: str
    efa: bool

    def grant_describe(self, grantee: iam.IGrantable) -> iam.Grant:
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["fsx:DescribeFileSystems"],
            resource_arns=["*"],  # nodes look for the file system by its name in DNS, among all
        )

    def associate(self, associations: Sequence[DataRepositoryAssociation]) -> None:
        """
        Create the associations, one after another. They are deleted with their stack: one that outlives it overlaps
        with that of the next stack, and FSx deletes no data with it.
        """
        keys = (each.bucket.encryption_key for each in associations)
        for key in {key.key_arn: key for key in keys if key is not None}.values():
            _let_fsx_use(key, Stack.of(self))
        previous: fsx.CfnDataRepositoryAssociation | None = None
        for each in associations:
            at_once = each.import_on_create
            association = fsx.CfnDataRepositoryAssociation(
                self,
                f"Association-{each.name}",
                file_system_id=self.file_system_id,
                file_system_path=each.file_system_path,
                data_repository_path=f"s3://{each.bucket.bucket_name}/{each.prefix}",
                batch_import_meta_data_on_create=bool(each.auto_import) if at_once is None else at_once,
                s3=fsx.CfnDataRepositoryAssociation.S3Property(
                    auto_import_policy=_import_policy(each.auto_import),
                    auto_export_policy=_export_policy(each.auto_export),
                ),
            )
            association.node.add_dependency(each.bucket)
            if previous is not None:
                # One after the other: FSx works on one association at a time, and the others can time out.
                association.add_resource_dependency(previous)
            previous = association


class LustreFileSystem(_LustreBase):
    """
    File system of type PERSISTENT_2 on SSD, Lustre 2.15 with metadata configuration, compressed, encrypted, retained by
    default.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        subnet: ec2.ISubnet,
        security_group: ec2.ISecurityGroup,
        storage_capacity_gib: int,
        per_unit_storage_throughput: Literal[125, 250, 500, 1000],
        efa: bool = False,
        metadata_iops: int | None = None,
        compression: Literal["LZ4", "NONE"] = "LZ4",
        maintenance_window: str | None = None,
        data_repository_associations: Sequence[DataRepositoryAssociation] = (),
        log_group: logs.ILogGroup | None = None,
        encryption_key: kms.IKey | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """
        Define a file system.

        Args:
            subnet: The nodes' subnet: traffic between zones is slow and costs, and EFA does not cross them.
            security_group: Lets its members talk to each other, such as ``HyperPodNetwork.security_group``.
            storage_capacity_gib: 1200, or a multiple of 2400; with EFA a multiple of 38400, 19200, 9600 or 4800 at a
                throughput of 125, 250, 500 or 1000. It can grow later, and never shrink.
            per_unit_storage_throughput: MB/s per TiB. With EFA it cannot be changed later.
            efa: Changing it replaces the file system. Default: False, TCP.
            metadata_iops: Default: mode AUTOMATIC, by capacity.
            compression: Default: "LZ4".
            maintenance_window: Such as "7:03:00", Sunday at 3 UTC. Default: FSx chooses.
            data_repository_associations: At most 8.
            log_group: For failed imports and exports; its name begins with ``/aws/fsx/``. Default: none.
            encryption_key: Changing it replaces the file system. Default: the key of AWS for FSx.
            removal_policy: Default: RETAIN_ON_UPDATE_OR_DELETE.
        """
        super().__init__(scope, construct_id)
        properties = translation.lustre(
            capacity_gib=storage_capacity_gib,
            throughput_mbps_per_tib=per_unit_storage_throughput,
            compression=compression,
            maintenance_window=maintenance_window,
            efa=efa,
            metadata_iops=metadata_iops,
        )
        if log_group is not None:
            properties["LustreConfiguration"]["LogConfiguration"] = {
                "Level": "WARN_ERROR",
                "Destination": log_group.log_group_arn,
            }
        resource = fsx.CfnFileSystem(
            self,
            "Resource",
            **arguments(fsx.CfnFileSystem, properties),
            subnet_ids=[subnet.subnet_id],
            security_group_ids=[security_group.security_group_id],
            kms_key_id=None if encryption_key is None else encryption_key.key_arn,
        )
        resource.apply_removal_policy(removal_policy)
        wait_for_rules(resource, security_group)
        self.file_system_id = resource.ref
        self.dns_name = resource.attr_dns_name
        self.mount_name = resource.attr_lustre_mount_name
        self.efa = efa
        self.associate(data_repository_associations)

    @staticmethod
    def from_attributes(
        scope: Construct,
        construct_id: str,
        *,
        file_system_id: str,
        dns_name: str | None = None,
        mount_name: str,
        efa: bool = False,
        data_repository_associations: Sequence[DataRepositoryAssociation] = (),
    ) -> ILustreFileSystem:
        """
        Refer to an external file system.

        Args:
            file_system_id: Such as ``fs-0123456789abcdef0``.
            dns_name: Default: FSx's for such an id in the stack's region.
            efa: EFA-enabled; nodes need one more permission. Default: False.
            data_repository_associations: New ones, beside existing.
        """
        known = dns_name is not None and not Token.is_unresolved(dns_name) and not Token.is_unresolved(file_system_id)
        if known and not str(dns_name).startswith(f"{file_system_id}."):
            raise ValueError(f"got dns_name {dns_name}; allowed: that of {file_system_id}; leave it out, or correct it")
        imported = _LustreBase(scope, construct_id)
        imported.file_system_id, imported.dns_name = file_system_id, dns_name or usual_dns_name(scope, file_system_id)
        imported.mount_name, imported.efa = mount_name, efa
        imported.associate(data_repository_associations)
        return imported


def _let_fsx_use(key: kms.IKey, stack: Stack) -> None:
    """
    Allow FSx's role for a linked bucket to use the bucket's key.

    After the FSx for Lustre user guide, "Working with server-side encrypted Amazon S3 buckets". FSx makes a role per
    file system, so the role is a pattern and not yet a principal. The bucket cannot be named: its resource names the
    key. The policy of an imported key is its owner's.
    """
    role = f"arn:{stack.partition}:iam::{stack.account}:role/aws-service-role/{FSX_ROLE}"
    key.add_to_resource_policy(
        iam.PolicyStatement(
            sid="LustreOfThisAccount",
            principals=[iam.AnyPrincipal()],
            actions=["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
            resources=["*"],  # in a key's policy: this key
            conditions={
                "StringEquals": {
                    "kms:CallerAccount": stack.account,
                    "kms:ViaService": f"s3.{stack.region}.{url_suffix(stack)}",
                },
                "ArnLike": {"aws:PrincipalArn": role},
            },
        )
    )


def _import_policy(
    events: Sequence[FileEvent],
) -> fsx.CfnDataRepositoryAssociation.AutoImportPolicyProperty | None:
    return fsx.CfnDataRepositoryAssociation.AutoImportPolicyProperty(events=list(events)) if events else None


def _export_policy(
    events: Sequence[FileEvent],
) -> fsx.CfnDataRepositoryAssociation.AutoExportPolicyProperty | None:
    return fsx.CfnDataRepositoryAssociation.AutoExportPolicyProperty(events=list(events)) if events else None

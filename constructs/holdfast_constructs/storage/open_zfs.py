"""FSx for OpenZFS file system, for home directories."""

from typing import Literal, Protocol

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct

from holdfast.validation import translation
from holdfast_constructs.cdk import arguments
from holdfast_constructs.storage.file_system_rules import usual_dns_name, wait_for_rules

BACKUP_RETENTION_DAYS = 7
ThroughputCapacity = Literal[160, 320, 640, 1280, 2560, 3840, 5120, 7680, 10240]


class IOpenZfsFileSystem(IConstruct, Protocol):
    """FSx for OpenZFS file system, owned or imported."""

    file_system_id: str
    dns_name: str


class OpenZfsFileSystem(Construct):
    """
    File system on SSD in the nodes' zone, compressed, encrypted, backed up daily for a week, retained by default.

    Clients are the members of the security group, with root as root: lifecycle scripts make home directories and give
    them to their users.
    """

    file_system_id: str
    dns_name: str

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        subnet: ec2.ISubnet,
        security_group: ec2.ISecurityGroup,
        storage_capacity_gib: int,
        throughput_capacity: ThroughputCapacity = 160,
        deployment_type: Literal["SINGLE_AZ_2", "SINGLE_AZ_HA_2"] = "SINGLE_AZ_2",
        encryption_key: kms.IKey | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """
        Define a file system.

        Args:
            subnet: The nodes' subnet.
            security_group: Allows port 2049 between members, such as ``HyperPodNetwork.security_group``.
            storage_capacity_gib: 64 to 524288. It can grow later, and never shrink.
            throughput_capacity: MB/s. Default: 160.
            deployment_type: Default: "SINGLE_AZ_2", a failed file server is replaced within minutes without access.
                "SINGLE_AZ_HA_2": a second server takes over, typically within a minute, at a higher price.
            encryption_key: Changing it replaces the file system. Default: the key of AWS for FSx.
            removal_policy: Default: RETAIN_ON_UPDATE_OR_DELETE.
        """
        super().__init__(scope, construct_id)
        deleted = removal_policy is RemovalPolicy.DESTROY
        clients = {"Clients": "*", "Options": ["rw", "crossmnt", "no_root_squash"]}
        properties = translation.open_zfs(
            capacity_gib=storage_capacity_gib, throughput_mbps=throughput_capacity, deployment_type=deployment_type
        )
        properties["OpenZFSConfiguration"] |= {
            "AutomaticBackupRetentionDays": 0 if deleted else BACKUP_RETENTION_DAYS,
            "CopyTagsToBackups": True,
            "CopyTagsToVolumes": True,
            "RootVolumeConfiguration": {
                "DataCompressionType": "LZ4",
                "NfsExports": [{"ClientConfigurations": [clients]}],
            },
            **({"Options": ["DELETE_CHILD_VOLUMES_AND_SNAPSHOTS"]} if deleted else {}),
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

    @staticmethod
    def from_attributes(
        scope: Construct, construct_id: str, *, file_system_id: str, dns_name: str | None = None
    ) -> IOpenZfsFileSystem:
        """
        Refer to an external file system.

        Args:
            file_system_id: Such as ``fs-0123456789abcdef0``.
            dns_name: Default: FSx's for such an id in the stack's region.
        """
        imported = _Imported(scope, construct_id)
        imported.file_system_id, imported.dns_name = file_system_id, dns_name or usual_dns_name(scope, file_system_id)
        return imported


class _Imported(Construct):
    file_system_id: str
    dns_name: str

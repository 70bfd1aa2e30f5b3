"""Parts that a cluster depends on, in AWS vocabulary: network, roles, lifecycle scripts, file systems."""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from holdfast.catalog import (
    ACCESS_ENTRY,
    ASSOCIATION,
    EKS_ADDON,
    EKS_CLUSTER,
    FILE_SYSTEM,
    LIFE_CYCLE,
    VPC_CONFIG,
    Property,
)
from holdfast.validation.model.item import Item


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Subnet(Item):
    id: str
    """Identity: ``subnet-...`` or a logical id."""
    availability_zone: str | None
    """None: the template leaves the choice to AWS."""
    availability_zone_id: str | None = None
    """None: it is not given by its id."""
    cidr: str
    """UNRESOLVED: of an existing subnet, unknown."""
    public: bool
    """Whether it routes to an internet gateway."""
    vpc_cidrs: tuple[str, ...] = ()
    """Blocks of its VPC; empty or UNRESOLVED: unknown."""


def zones_of(subnets: Sequence[Subnet]) -> list[str | None]:
    """Zones by id, where all subnets have theirs by id, else by name; None where AWS chooses."""
    if all(subnet.availability_zone_id is not None for subnet in subnets):
        return [subnet.availability_zone_id for subnet in subnets]
    return [subnet.availability_zone for subnet in subnets]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Traffic(Item):
    protocol: str
    """``-1`` for all, ``tcp``, ``udp``, ..."""
    from_port: int | None = None
    to_port: int | None = None
    peer: str
    """A CIDR block, a prefix list, or the ``id`` of a SecurityGroup."""

    def covers(self, low: int, high: int) -> bool:
        """Return True if it is about these ports of TCP."""
        if self.protocol == "-1":
            return True
        if self.protocol not in ("tcp", "6") or self.from_port is None or self.to_port is None:
            return False
        return self.from_port <= low and high <= self.to_port


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SecurityGroup(Item):
    """Security group with its rules, including those of separate resources."""

    id: str
    """Identity: ``sg-...`` or a logical id. ``Traffic.peer`` refers to it."""
    ingress: tuple[Traffic, ...]
    egress: tuple[Traffic, ...]
    """What EC2 makes of it: all traffic to 0.0.0.0/0 when a template writes none."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class VpcConfig(Item):
    """Subnets and security groups of a cluster, a group, or a file system (API: VpcConfig)."""

    subnets: Annotated[tuple[Subnet, ...], Property(VPC_CONFIG, "Subnets")]
    security_groups: Annotated[tuple[SecurityGroup, ...], Property(VPC_CONFIG, "SecurityGroupIds")]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Network(Item):
    """VPC of the cluster, as far as the source makes it."""

    cidr: str | None
    """None: of an existing VPC, unknown."""
    nat: bool
    """Whether the nodes' subnets route to a NAT gateway."""
    way_out: bool
    """Whether they have a default route: to a NAT gateway, a transit gateway, an appliance."""
    s3_gateway: bool
    """Whether a gateway endpoint to S3 is in the nodes' route tables."""
    interface_endpoints: frozenset[str]
    """Services with an interface endpoint, as at the end of their service name: ``ecr.api``, ``sts``."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Statement(Item):
    effect: str
    """``Allow`` or ``Deny``."""
    actions: tuple[str, ...]
    resources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Role(Item):
    """IAM role of the source, with all its policies there."""

    id: str
    """Identity: an ARN or a logical id."""
    trusted_services: frozenset[str]
    """``sagemaker.amazonaws.com``, ..."""
    statements: tuple[Statement, ...]
    managed_policies: frozenset[str]
    """Names at the end of the ARNs of AWS managed policies."""

    def allows(self, action: str, *, kind: str = "") -> bool:
        """
        Return True if a statement allows an action on any resource; managed policies do not count.

        Actions of EC2 that describe have no resources: a statement that names some does not allow them.

        Args:
            kind: Of resources of the action's service that it has to be allowed on, such as ``cluster``. Default: any.
        """
        service = action.partition(":")[0]
        for_all = action.startswith("ec2:Describe")
        return any(
            fnmatch.fnmatchcase(action.lower(), pattern.lower())
            for statement in self.statements
            if statement.effect == "Allow"
            and not (for_all and statement.is_known("resources") and "*" not in statement.resources)
            and not (
                kind
                and statement.is_known("resources")
                and not any(may_be(each, service=service, resource=f"{kind}/") for each in statement.resources)
            )
            for pattern in statement.actions
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Script(Item):
    name: str
    """Relative to the source URI."""
    text: str | None
    """None: there is no such file."""
    mistake: str | None = None
    """Syntax error, if bash has checked it."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Lifecycle(Item):
    """What runs on new nodes of a group (API: LifeCycleConfig)."""

    source_s3_uri: Annotated[str | None, Property(LIFE_CYCLE, "SourceS3Uri")]
    on_create: Annotated[str | None, Property(LIFE_CYCLE, "OnCreate")]
    on_init_complete: Annotated[str | None, Property(LIFE_CYCLE, "OnInitComplete")] = None
    scripts: tuple[Script, ...]
    """The files under the URI; UNRESOLVED when the source does not have them."""

    @property
    def is_empty(self) -> bool:
        """True if it exists without content."""
        return self.source_s3_uri is None and self.on_create is None and self.on_init_complete is None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DataRepositoryAssociation(Item):
    name: str
    file_system_path: Annotated[str, Property(ASSOCIATION, "FileSystemPath")]
    data_repository_path: Annotated[str, Property(ASSOCIATION, "DataRepositoryPath")]
    """``s3://bucket/prefix``, or the prefix alone when all are in one bucket."""
    waits_for_others: bool
    """Whether it is made after, or before, each other one of its file system, never at once."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LustreFileSystem(Item):
    id: str
    deployment_type: Annotated[str, Property(FILE_SYSTEM, "LustreConfiguration.DeploymentType", "SCRATCH_1")]
    storage_type: Annotated[str, Property(FILE_SYSTEM, "StorageType", "SSD")] = "SSD"
    capacity_gib: Annotated[int | None, Property(FILE_SYSTEM, "StorageCapacity")]
    throughput_mbps_per_tib: Annotated[
        int | None, Property(FILE_SYSTEM, "LustreConfiguration.PerUnitStorageThroughput")
    ]
    throughput_capacity: Annotated[int | None, Property(FILE_SYSTEM, "LustreConfiguration.ThroughputCapacity")] = None
    """MB/s of intelligent tiering."""
    version: Annotated[str | None, Property(FILE_SYSTEM, "FileSystemTypeVersion")]
    efa: Annotated[bool, Property(FILE_SYSTEM, "LustreConfiguration.EfaEnabled")] = False
    metadata_mode: Annotated[str | None, Property(FILE_SYSTEM, "LustreConfiguration.MetadataConfiguration.Mode")] = None
    """None: no metadata configuration. ``AUTOMATIC`` or ``USER_PROVISIONED``."""
    metadata_iops: Annotated[int | None, Property(FILE_SYSTEM, "LustreConfiguration.MetadataConfiguration.Iops")] = None
    compression: Annotated[str, Property(FILE_SYSTEM, "LustreConfiguration.DataCompressionType", "NONE")] = "NONE"
    maintenance_window: Annotated[
        str | None, Property(FILE_SYSTEM, "LustreConfiguration.WeeklyMaintenanceStartTime")
    ] = None
    import_path: Annotated[str | None, Property(FILE_SYSTEM, "LustreConfiguration.ImportPath")] = None
    export_path: Annotated[str | None, Property(FILE_SYSTEM, "LustreConfiguration.ExportPath")] = None
    vpc: VpcConfig
    kept: bool
    """Whether it outlives its stack."""
    data_repository_associations: tuple[DataRepositoryAssociation, ...] = ()
    preload: tuple[str, ...] = ()
    """Folders that are fetched from S3 when the cluster is made."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OpenZfsFileSystem(Item):
    id: str
    deployment_type: Annotated[str, Property(FILE_SYSTEM, "OpenZFSConfiguration.DeploymentType")]
    capacity_gib: Annotated[int | None, Property(FILE_SYSTEM, "StorageCapacity")]
    throughput_mbps: Annotated[int, Property(FILE_SYSTEM, "OpenZFSConfiguration.ThroughputCapacity")]
    vpc: VpcConfig


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LogGroup(Item):
    name: str | None
    retention_days: int | None
    """None: logs are kept forever."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Image(Item):
    repository: str | None
    digest: str | None
    tag: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Addon(Item):
    name: Annotated[str, Property(EKS_ADDON, "AddonName")]
    version: Annotated[str | None, Property(EKS_ADDON, "AddonVersion")]
    configuration: Annotated[Mapping[str, object], Property(EKS_ADDON, "ConfigurationValues")] = field(
        default_factory=dict
    )
    has_role: Annotated[bool, Property(EKS_ADDON, "PodIdentityAssociations")] = True
    """Whether a role is given to it: a pod identity association, or a service account role."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AccessEntry(Item):
    type: Annotated[str, Property(ACCESS_ENTRY, "Type", "STANDARD")]
    """``HYPERPOD_LINUX``, ``STANDARD``, ..."""
    principal: Annotated[str, Property(ACCESS_ENTRY, "PrincipalArn")]
    """An ARN, or the ``id`` of a Role."""
    policies: Annotated[tuple[str, ...], Property(ACCESS_ENTRY, "AccessPolicies", each="PolicyArn")] = ()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class HelmRelease(Item):
    chart: str
    before_cluster: bool
    """Whether the HyperPod cluster waits for it."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EksControlPlane(Item):
    """EKS cluster of a HyperPod cluster, if the source makes it."""

    version: Annotated[str | None, Property(EKS_CLUSTER, "Version")]
    """None: the newest that EKS has."""
    authentication_mode: Annotated[str | None, Property(EKS_CLUSTER, "AccessConfig.AuthenticationMode")]
    """None: the service's default, CONFIG_MAP."""
    private_access: Annotated[bool, Property(EKS_CLUSTER, "ResourcesVpcConfig.EndpointPrivateAccess")]
    public_access: Annotated[bool, Property(EKS_CLUSTER, "ResourcesVpcConfig.EndpointPublicAccess", default=True)]
    public_access_cidrs: Annotated[tuple[str, ...], Property(EKS_CLUSTER, "ResourcesVpcConfig.PublicAccessCidrs")] = ()
    vpc: VpcConfig
    addons: tuple[Addon, ...]
    releases: tuple[HelmRelease, ...]
    access_entries: tuple[AccessEntry, ...]
    bootstraps_addons: Annotated[bool, Property(EKS_CLUSTER, "BootstrapSelfManagedAddons", default=True)] = False
    """True if EKS installs its network plugin, kube-proxy and CoreDNS, its default."""
    node_roles: frozenset[str] = frozenset()
    """Ids of the roles of nodes that are not HyperPod's."""


MANAGED_POLICY = "AmazonSageMakerClusterInstanceRolePolicy"


def may_be(pattern: str, *, service: str, resource: str, region: str | None = None) -> bool:
    """
    Return True if a resource of a policy, with gaps, may stand for one.

    Args:
        resource: End of its ARN; a kind and a slash, such as ``key/``, for any of the kind.
        region: Default: any.
    """
    parts = re.sub(r"\$\{[^}]*\}", "*", pattern).split(":", 5)
    if len(parts) < 6:
        return "*" in parts[0]
    any_of_kind = resource.endswith("/") and parts[5].startswith(resource)
    return (
        fnmatch.fnmatchcase(service, parts[2])
        and (region is None or fnmatch.fnmatchcase(region, parts[3]))
        and (any_of_kind or fnmatch.fnmatchcase(f"{resource}a" if resource.endswith("/") else resource, parts[5]))
    )

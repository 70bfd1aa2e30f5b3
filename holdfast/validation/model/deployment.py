"""
A HyperPod cluster and all that belongs to it, in AWS vocabulary.

Rules judge only this. ``None``: absent; ``UNRESOLVED``: unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any

from holdfast.catalog import ACCOUNTING, CLUSTER, SLURM, Property
from holdfast.validation.model.app import App
from holdfast.validation.model.existing import Existing
from holdfast.validation.model.facts import AccountFacts
from holdfast.validation.model.governance import Governance
from holdfast.validation.model.groups import Group, InstanceGroup, RestrictedGroup, RestrictedLustre
from holdfast.validation.model.item import Item
from holdfast.validation.model.node_pools import NodePool
from holdfast.validation.model.surroundings import (
    EksControlPlane,
    Image,
    LogGroup,
    LustreFileSystem,
    Network,
    OpenZfsFileSystem,
    Role,
    VpcConfig,
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AccountingDatabase(Item):
    endpoint: Annotated[str | None, Property(ACCOUNTING, "Endpoint")]
    """None: the source makes the database."""
    secret_arn: Annotated[str | None, Property(ACCOUNTING, "SecretArn")] = None
    port: Annotated[int | None, Property(ACCOUNTING, "Port")] = None
    database: Annotated[str | None, Property(ACCOUNTING, "Name")] = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Slurm(Item):
    """The Slurm orchestrator (API: ClusterOrchestratorSlurmConfig)."""

    config_strategy: Annotated[str | None, Property(SLURM, "SlurmConfigStrategy")]
    """None: nothing is sent, and the service takes its default."""
    accounting: Annotated[AccountingDatabase | None, Property(SLURM, "AccountingDatabase")] = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Eks(Item):
    """The EKS orchestrator (API: ClusterOrchestratorEksConfig)."""

    cluster_arn: str | None = None
    """None: that of ``control_plane``."""
    control_plane: EksControlPlane | None = None
    """None: external, its attributes are unknown."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Cluster(Item):
    """A HyperPod cluster (API: CreateCluster)."""

    name: Annotated[str | None, Property(CLUSTER, "ClusterName")]
    """None: CloudFormation makes one up."""
    instance_groups: Annotated[tuple[InstanceGroup, ...], Property(CLUSTER, "InstanceGroups")]
    restricted_groups: Annotated[tuple[RestrictedGroup, ...], Property(CLUSTER, "RestrictedInstanceGroups")] = ()
    restricted_lustre: Annotated[
        RestrictedLustre | None,
        Property(CLUSTER, "RestrictedInstanceGroupsConfig.SharedEnvironmentConfig.FSxLustreConfig"),
    ] = None
    """The file system that the restricted groups share."""
    vpc: Annotated[VpcConfig | None, Property(CLUSTER, "VpcConfig")]
    slurm: Annotated[Slurm | None, Property(CLUSTER, "Orchestrator")] = None
    eks: Annotated[Eks | None, Property(CLUSTER, "Orchestrator")] = None
    node_recovery: Annotated[str | None, Property(CLUSTER, "NodeRecovery")] = None
    """``Automatic`` or ``None`` in quotes. None: not set, the service takes Automatic."""
    node_provisioning_mode: Annotated[str | None, Property(CLUSTER, "NodeProvisioningMode")] = None
    auto_scaler: Annotated[str | None, Property(CLUSTER, "AutoScaling.AutoScalerType", "Karpenter")] = None
    role: Annotated[Role | None, Property(CLUSTER, "ClusterRole")] = None
    """The ClusterRole, when the source makes it."""
    has_role: Annotated[bool, Property(CLUSTER, "ClusterRole")] = False
    """Whether there is a ClusterRole."""
    tiered_storage_percent: Annotated[
        int | None, Property(CLUSTER, "TieredStorageConfig.InstanceMemoryAllocationPercentage")
    ] = None
    tags: Annotated[Mapping[str, str], Property(CLUSTER, "Tags")] = field(default_factory=dict)

    @property
    def continuous(self) -> bool:
        """True if nodes are provisioned one by one rather than all or none."""
        return self.node_provisioning_mode == "Continuous"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class User(Item):
    name: str
    uid: int
    home: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EnvironmentFile(Item):
    """Settings of an environment file that AWS does not get."""

    cloud: str
    """``aws`` or ``embedded``."""
    new_network: bool
    """Whether ``network.cidr`` is there."""
    existing_network: bool
    """Whether ``network.existing`` is there."""
    first_zone: str | None
    further_zones: tuple[str, ...]
    group_zones: Mapping[str, str]
    """Path of a group's zone -> the zone."""
    placed_twice: tuple[str, ...]
    """Paths of zones of groups that have subnets of their own."""
    control_plane_zone: str | None
    control_plane_subnets: int
    """How many of an existing network are named."""
    orchestrators: tuple[str, ...]
    """The sections ``slurm`` and ``eks`` that are there."""
    accounting_created: bool | None
    """None: no accounting is asked for."""
    accounting_settings: tuple[str, ...] = ()
    """Settings of an existing database."""
    image_source: str | None = None
    image_settings: tuple[str, ...] = ()
    """Settings of the image, beside its source."""
    agent_image_source: str | None = None
    agent_image_settings: tuple[str, ...] = ()
    """The same of the image of the health agent."""
    operator_image_source: str | None = None
    operator_image_settings: tuple[str, ...] = ()
    """The same of the image of the operator."""
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    goodput_target_percent: float | None = None
    checkpoint_interval_s: float | None = None
    kms_key: str | None = None
    """``aws-managed``, ``create``, or the ARN of a key."""
    users: tuple[User, ...] = ()
    scripts: tuple[str, ...] = ()
    """Lifecycle scripts of the cluster's owner."""
    health_mode: str = "observe"
    breaker_share: float = 0.1
    checks: tuple[str, ...] = ()
    """Executables of the owner's that the health agent runs."""
    egress: str = "nat"
    chart_archives: str | None = None
    """Folder with the archives of Helm charts; None: they come from GitHub."""
    charts_in_archives: tuple[str, ...] = ()
    """Charts in the archives of that folder."""
    training_operator: bool | str = False
    """True: AWS's; ``holdfast``: that of ``operator_image_source``."""
    observability_addon: bool = False
    prometheus: bool = False
    grafana: bool = False
    alarms: bool = True
    alarm_emails: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    """What is written, as it was read."""
    existing: Existing | None = None
    """What it uses that is there already."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Deployment(Item):
    """One cluster, and all that the source describes with it."""

    account: str | None
    region: str | None
    """None: wherever the template is deployed."""
    cluster: Cluster
    network: Network | None = None
    """None: external, its attributes are unknown."""
    lustre_file_systems: tuple[LustreFileSystem, ...] = ()
    openzfs_file_systems: tuple[OpenZfsFileSystem, ...] = ()
    images: tuple[Image, ...] = ()
    log_groups: tuple[LogGroup, ...] = ()
    governance: Governance | None = None
    node_pools: tuple[NodePool, ...] = ()
    alarm_names: frozenset[str] = frozenset()
    """Alarms that the source makes."""
    others: tuple[Item, ...] = ()
    """What the source holds beside all that; each is judged by itself."""
    file: EnvironmentFile | None = None
    """None: the source is no environment file."""
    app: App | None = None
    """None: the source is no template."""
    today: date | None = None
    """The day that versions are judged by. None: that of the facts."""
    facts: AccountFacts | None = None
    """Facts of the account. None: not queried; UNRESOLVED: the query failed."""


def groups_of(cluster: Cluster) -> Sequence[Group]:
    return (*cluster.instance_groups, *cluster.restricted_groups)


def mounting(file_system: str, deployment: Deployment) -> list[InstanceGroup]:
    return [
        group
        for group in deployment.cluster.instance_groups
        if any(mount.file_system == file_system for mount in group.mounts)
    ]

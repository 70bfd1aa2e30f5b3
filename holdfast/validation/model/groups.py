"""Instance groups of a cluster, in AWS vocabulary."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from holdfast.catalog import (
    AUTO_PATCH,
    BATCH_SIZE,
    DEPLOYMENT,
    GROUP,
    MOUNT,
    RESTRICTED_GROUP,
    RESTRICTED_LUSTRE,
    SCHEDULED_UPDATE,
    TAINT,
    VOLUME,
    Property,
)
from holdfast.validation.model.item import Item
from holdfast.validation.model.surroundings import Lifecycle, Role, VpcConfig


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Volume(Item):
    """An EBS volume of every node (API: EbsVolumeConfig)."""

    size_gib: Annotated[int | None, Property(VOLUME, "VolumeSizeInGB")]
    kms_key: Annotated[str | None, Property(VOLUME, "VolumeKmsKeyId")] = None
    root: Annotated[bool, Property(VOLUME, "RootVolume")] = False


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Mount(Item):
    """A file system on every node (API: FsxLustreConfig, FsxOpenZfsConfig)."""

    kind: str
    """``lustre`` or ``openzfs``."""
    dns_name: Annotated[str | None, Property(MOUNT, "DnsName")]
    mount_name: Annotated[str | None, Property(MOUNT, "MountName")] = None
    """Of Lustre only."""
    mount_path: Annotated[str | None, Property(MOUNT, "MountPath")]
    """None: the service's default."""
    file_system: str | None = None
    """The ``id`` of the file system, when the same source makes it."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Taint(Item):
    key: Annotated[str, Property(TAINT, "Key")]
    value: Annotated[str | None, Property(TAINT, "Value")]
    effect: Annotated[str, Property(TAINT, "Effect")]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BatchSize(Item):
    """How many nodes are taken at once (API: CapacitySizeConfig)."""

    type: Annotated[str, Property(BATCH_SIZE, "Type")]
    """``INSTANCE_COUNT`` or ``CAPACITY_PERCENTAGE``."""
    value: Annotated[int, Property(BATCH_SIZE, "Value")]


ALARM_OF_APP = "arn:aws:cloudwatch:::alarm:"
"""Beginning of the ARN that stands for an alarm that its app makes."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RollingUpdate(Item):
    """How an update rolls over a group (API: DeploymentConfiguration)."""

    maximum_batch_size: Annotated[BatchSize | None, Property(DEPLOYMENT, "RollingUpdatePolicy.MaximumBatchSize")] = None
    rollback_maximum_batch_size: Annotated[
        BatchSize | None, Property(DEPLOYMENT, "RollingUpdatePolicy.RollbackMaximumBatchSize")
    ] = None
    wait_interval_s: Annotated[int | None, Property(DEPLOYMENT, "WaitIntervalInSeconds")] = None
    rollback_alarms: Annotated[
        tuple[str, ...], Property(DEPLOYMENT, "AutoRollbackConfiguration", each="AlarmName")
    ] = ()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScheduledUpdate(Item):
    """Updates of software on a schedule (API: ScheduledUpdateConfig)."""

    schedule_expression: Annotated[str, Property(SCHEDULED_UPDATE, "ScheduleExpression")]
    deployment: Annotated[RollingUpdate | None, Property(SCHEDULED_UPDATE, "DeploymentConfig")] = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AutoPatch(Item):
    """Patches that are applied by themselves (API: AutoPatchConfig)."""

    strategy: Annotated[str, Property(AUTO_PATCH, "PatchingStrategy")]
    next_patch_date: Annotated[str | None, Property(AUTO_PATCH, "PatchSchedule.NextPatchDate")] = None
    deployment: Annotated[RollingUpdate | None, Property(AUTO_PATCH, "DeploymentConfig")] = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Group(Item):
    name: Annotated[str, Property(GROUP, "InstanceGroupName")]
    instance_type: Annotated[str | None, Property(GROUP, "InstanceType")]
    instance_count: Annotated[int, Property(GROUP, "InstanceCount")]
    """As AWS is asked for it: working nodes and spares."""
    threads_per_core: Annotated[int | None, Property(GROUP, "ThreadsPerCore")] = None
    """None: not set, the service takes 1."""
    volumes: Annotated[tuple[Volume, ...], Property(GROUP, "InstanceStorageConfigs")] = ()
    training_plan_arn: Annotated[str | None, Property(GROUP, "TrainingPlanArn")] = None
    deep_health_checks: Annotated[tuple[str, ...], Property(GROUP, "OnStartDeepHealthChecks")] = ()
    override_vpc: Annotated[VpcConfig | None, Property(GROUP, "OverrideVpcConfig")] = None
    role: Annotated[Role | None, Property(GROUP, "ExecutionRole")] = None
    """None: the source makes no role, or leaves it to Holdfast's constructs."""

    @property
    def types(self) -> tuple[str, ...]:
        """Instance types of its nodes, the preferred one first."""
        return () if self.instance_type is None else (self.instance_type,)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class InstanceGroup(Group):
    """An instance group (API: ClusterInstanceGroupSpecification)."""

    instance_types: Annotated[tuple[str, ...], Property(GROUP, "InstanceRequirements.InstanceTypes")] = ()
    """Flexible types (API: InstanceRequirements)."""
    spare_count: int | None = None
    """The part of instance_count that idles. None: the source does not tell."""
    min_instance_count: Annotated[int | None, Property(GROUP, "MinInstanceCount")] = None
    capacity: Annotated[str | None, Property(GROUP, "CapacityRequirements")] = None
    """``spot`` or ``on-demand``. None: not set."""
    mounts: Annotated[tuple[Mount, ...], Property(GROUP, "InstanceStorageConfigs")] = ()
    image_id: Annotated[str | None, Property(GROUP, "ImageId")] = None
    image_release_version: Annotated[str | None, Property(GROUP, "ImageReleaseVersion")] = None
    network_interface: Annotated[str | None, Property(GROUP, "NetworkInterface.InterfaceType")] = None
    """``efa`` or ``efa-only``. None: not set."""
    lifecycle: Annotated[Lifecycle | None, Property(GROUP, "LifeCycleConfig")] = None
    labels: Annotated[Mapping[str, str], Property(GROUP, "KubernetesConfig.Labels")] = field(default_factory=dict)
    taints: Annotated[tuple[Taint, ...], Property(GROUP, "KubernetesConfig.Taints")] = ()
    node_type: Annotated[str | None, Property(GROUP, "SlurmConfig.NodeType")] = None
    """What Slurm makes of it: ``Controller``, ``Login``, ``Compute``. None: it has no SlurmConfig."""
    partitions: Annotated[tuple[str, ...], Property(GROUP, "SlurmConfig.PartitionNames")] = ()
    scheduled_update: Annotated[ScheduledUpdate | None, Property(GROUP, "ScheduledUpdateConfig")] = None
    auto_patch: Annotated[AutoPatch | None, Property(GROUP, "AutoPatchConfig")] = None

    @property
    def types(self) -> tuple[str, ...]:
        return super().types or self.instance_types


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RestrictedLustre(Item):
    """A file system that the service makes for restricted groups (API: FSxLustreConfig)."""

    capacity_gib: Annotated[int, Property(RESTRICTED_LUSTRE, "SizeInGiB")]
    throughput_mbps_per_tib: Annotated[int, Property(RESTRICTED_LUSTRE, "PerUnitStorageThroughput")]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RestrictedGroup(Group):
    """A restricted instance group (API: ClusterRestrictedInstanceGroupSpecification)."""

    lustre: Annotated[RestrictedLustre | None, Property(RESTRICTED_GROUP, "EnvironmentConfig.FSxLustreConfig")] = None

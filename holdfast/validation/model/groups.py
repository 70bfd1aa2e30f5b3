"""The instance groups of a cluster, in AWS vocabulary."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.validation.model.item import Item
from holdfast.validation.model.surroundings import Lifecycle, Role, VpcConfig


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Volume(Item):
    """An EBS volume of every node (API: EbsVolumeConfig)."""

    size_gib: int | None
    kms_key: str | None = None
    root: bool = False


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Mount(Item):
    """A file system on every node (API: FsxLustreConfig, FsxOpenZfsConfig)."""

    kind: str
    """``lustre`` or ``openzfs``."""
    dns_name: str | None
    mount_name: str | None = None
    """Of Lustre only."""
    mount_path: str | None
    """None: the service's default."""
    file_system: str | None = None
    """The ``id`` of the file system, when the same source makes it."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Taint(Item):
    """A Kubernetes taint."""

    key: str
    value: str | None
    effect: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BatchSize(Item):
    """How many nodes are taken at once (API: CapacitySizeConfig)."""

    type: str
    """``INSTANCE_COUNT`` or ``CAPACITY_PERCENTAGE``."""
    value: int


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RollingUpdate(Item):
    """How an update rolls over a group (API: DeploymentConfiguration)."""

    maximum_batch_size: BatchSize | None = None
    rollback_maximum_batch_size: BatchSize | None = None
    wait_interval_s: int | None = None
    alarm_names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScheduledUpdate(Item):
    """Updates of software on a schedule (API: ScheduledUpdateConfig)."""

    schedule_expression: str
    deployment: RollingUpdate | None = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AutoPatch(Item):
    """Patches that are applied by themselves (API: AutoPatchConfig)."""

    strategy: str
    next_patch_date: str | None = None
    deployment: RollingUpdate | None = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Group(Item):
    """What every group of nodes has."""

    name: str
    instance_type: str | None
    instance_count: int
    """As AWS is asked for it: working nodes and spares."""
    threads_per_core: int | None = None
    """None: not said, the service takes 1."""
    volumes: tuple[Volume, ...] = ()
    training_plan_arn: str | None = None
    deep_health_checks: tuple[str, ...] = ()
    override_vpc: VpcConfig | None = None
    role: Role | None = None
    """None: the source makes no role, or leaves it to Holdfast's constructs."""

    @property
    def types(self) -> tuple[str, ...]:
        """The instance types that its nodes may have, the preferred one first."""
        return () if self.instance_type is None else (self.instance_type,)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class InstanceGroup(Group):
    """An instance group (API: ClusterInstanceGroupSpecification)."""

    instance_types: tuple[str, ...] = ()
    """Flexible types (API: InstanceRequirements)."""
    spare_count: int | None = None
    """The part of instance_count that idles. None: the source does not tell."""
    min_instance_count: int | None = None
    capacity: str | None = None
    """``spot`` or ``on-demand``. None: not said."""
    mounts: tuple[Mount, ...] = ()
    image_id: str | None = None
    image_release_version: str | None = None
    network_interface: str | None = None
    """``efa`` or ``efa-only``. None: not said."""
    lifecycle: Lifecycle | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    node_type: str | None = None
    """What Slurm makes of it: ``Controller``, ``Login``, ``Compute``. None: it has no SlurmConfig."""
    partitions: tuple[str, ...] = ()
    scheduled_update: ScheduledUpdate | None = None
    auto_patch: AutoPatch | None = None

    @property
    def types(self) -> tuple[str, ...]:
        return super().types or self.instance_types


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RestrictedLustre(Item):
    """A file system that the service makes for restricted groups (API: FSxLustreConfig)."""

    capacity_gib: int
    throughput_mbps_per_tib: int


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RestrictedGroup(Group):
    """A restricted instance group (API: ClusterRestrictedInstanceGroupSpecification)."""

    lustre: RestrictedLustre | None = None

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from holdfast_constructs.groups.options import (
    AutoPatch,
    DeepHealthCheck,
    EbsVolume,
    OverrideVpc,
    ScheduledUpdate,
    Taint,
)
from holdfast_constructs.lifecycle import ILifecycleScripts
from holdfast_constructs.storage import Mount

LifecycleMode = Literal["extension", "custom", "none"]
"""Who makes a node ready: HyperPod and then scripts, scripts alone, or HyperPod alone."""


@dataclass(frozen=True, kw_only=True)
class InstanceGroup:
    """
    Nodes of one kind that are scaled and replaced as a unit.

    Refuses only contradictions that cannot be rendered; the cluster's rules judge the rest.
    """

    name: str
    instance_count: int
    instance_type: str | None = None
    """Such as ``ml.p5.48xlarge``. Default: none, and ``instance_types`` are given."""
    instance_types: Sequence[str] = ()
    """Types of a flexible group, the preferred one first. Default: none, and ``instance_type`` is given."""
    min_instance_count: int | None = None
    """Nodes that must be there within three hours for the group to come into service. Default: all of them, or with
    continuous provisioning as many as there are."""
    threads_per_core: Literal[1, 2] = 1
    """Default: 1, no hyper-threading."""
    root_volume_key: kms.IKey | None = None
    """Encrypts the root volume; the same holds as for ``EbsVolume.key``. Default: a key of AWS."""
    volumes: Sequence[EbsVolume] = ()
    """Default: no volume besides the root volume."""
    mounts: Sequence[Mount] | None = None
    """File systems on these nodes. They reach new nodes only. Default: those of the cluster."""
    training_plan_arn: str | None = None
    """A training plan, which no construct makes, to take the nodes from. Default: none."""
    capacity: Literal["spot", "on-demand"] | None = None
    """It cannot be changed later. Default: none is asked for, HyperPod takes on-demand instances."""
    deep_health_checks: Sequence[DeepHealthCheck] = ()
    """Run on every new node before it takes jobs. Default: none."""
    image_id: str | None = None
    """``ami-...`` or ``default``. Default: the newest image of HyperPod."""
    image_release_version: str | None = None
    """Of HyperPod's image, such as ``1.2.3``, on EKS only. A change updates the nodes. Default: the newest."""
    scheduled_update: ScheduledUpdate | None = None
    """Default: the image is updated only on demand."""
    auto_patch: AutoPatch | None = None
    """Default: patches are not applied by themselves."""
    network_interface: Literal["efa", "efa-only"] | None = None
    """``efa-only`` interfaces carry no IP traffic. Default: HyperPod's choice for the type."""
    override_vpc: OverrideVpc | None = None
    """Default: the network of the cluster."""
    lifecycle_mode: LifecycleMode | None = None
    """extension: HyperPod makes nodes ready and starts Slurm, then the bundle's ``on_init_complete`` runs. custom:
    HyperPod starts nothing, the bundle's ``on_create`` does all of it. none: HyperPod alone. It reaches new nodes only.
    Default: extension; custom on EKS, which takes nothing else, and with continuous provisioning; none without a
    bundle."""
    lifecycle: ILifecycleScripts | None = None
    """The scripts of these nodes. Default: those of the cluster."""
    role: iam.IRole | None = None
    """The execution role of these nodes. It gets what they need, unless it is imported as immutable. Default: that of
    the cluster."""
    node_type: Literal["Controller", "Login", "Compute"] | None = None
    """What Slurm makes of the group. It cannot be changed later. Default: none, the orchestrator is EKS."""
    partition: str | None = None
    """Slurm's partition, for Compute groups. Default: none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Kubernetes labels of every node. Default: none."""
    taints: Sequence[Taint] = ()
    """Kubernetes taints of every node. Default: none."""

    def __post_init__(self) -> None:
        if (self.instance_type is None) == (not self.instance_types):
            raise ValueError(
                f"instance group '{self.name}': got instance_type {self.instance_type!r} and instance_types "
                f"{list(self.instance_types)!r}; allowed: exactly one of them"
            )

    @property
    def types(self) -> tuple[str, ...]:
        """Possible instance types, the preferred one first."""
        return tuple(self.instance_types) if self.instance_type is None else (self.instance_type,)

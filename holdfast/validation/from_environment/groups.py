"""Instance groups of an environment file as rules see them."""

from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.model import (
    AutoPatch,
    BatchSize,
    InstanceGroup,
    Lifecycle,
    Mount,
    RestrictedGroup,
    RestrictedLustre,
    RollingUpdate,
    ScheduledUpdate,
    SecurityGroup,
    Subnet,
    Taint,
    Volume,
    VpcConfig,
)

SAME_NAMES = (
    "name", "instance_type", "instance_count", "spare_count", "min_instance_count", "threads_per_core", "capacity",
    "training_plan_arn", "deep_health_checks", "image_id", "image_release_version", "network_interface", "override_vpc",
    "labels", "taints", "scheduled_update", "auto_patch", "instance_types",
)  # fmt: skip
"""Settings that are called as rules call them."""


def instance_group(
    group: Settings, *, mounts: tuple[Mount, ...], lifecycle: Lifecycle | None, lifecycle_place: str
) -> InstanceGroup:
    """An item of ``cluster.instance_groups``."""
    types, checks, slurm, taints = group.instance_types, group.deep_health_checks, group.slurm, group.taints
    partition = None if slurm is None else slurm.partition
    return InstanceGroup(
        path=group.path,
        places={
            **group.places(**{name: name for name in SAME_NAMES}, volumes="volume_gib"),
            "lifecycle": lifecycle_place,
            "node_type": f"{group.path}.slurm.node_type",
            "partitions": f"{group.path}.slurm.partition",
        },
        name=group.name,
        instance_type=group.instance_type,
        instance_types=() if types is None else types,
        instance_count=_sum(group.instance_count, group.spare_count),
        spare_count=group.spare_count,
        min_instance_count=group.min_instance_count,
        threads_per_core=group.threads_per_core,
        volumes=_volumes(group),
        mounts=mounts,
        training_plan_arn=group.training_plan_arn,
        deep_health_checks=checks,
        capacity=group.capacity,
        image_id=group.image_id,
        image_release_version=group.image_release_version,
        network_interface=group.network_interface,
        override_vpc=_override(group.override_vpc),
        lifecycle=lifecycle,
        labels=group.labels,
        taints=taints if taints is UNRESOLVED else tuple(_taint(taint) for taint in taints),
        node_type=None if slurm is None else slurm.node_type,
        partitions=partition if partition is UNRESOLVED else () if partition is None else (partition,),
        scheduled_update=_scheduled(group.scheduled_update),
        auto_patch=_patch(group.auto_patch),
    )


def restricted_group(group: Settings) -> RestrictedGroup:
    """An item of ``cluster.restricted_instance_groups``."""
    names = ("name", "instance_type", "instance_count", "threads_per_core", "training_plan_arn", "deep_health_checks",
             "override_vpc", "lustre")  # fmt: skip
    return RestrictedGroup(
        path=group.path,
        places=group.places(**{name: name for name in names}, volumes="volume_gib"),
        name=group.name,
        instance_type=group.instance_type,
        instance_count=group.instance_count,
        threads_per_core=group.threads_per_core,
        volumes=(_volume(group, None),) if group.says("volume_gib") else (),
        training_plan_arn=group.training_plan_arn,
        deep_health_checks=group.deep_health_checks,
        override_vpc=_override(group.override_vpc),
        lustre=None if group.lustre is None else restricted_lustre(group.lustre),
    )


def restricted_lustre(settings: Settings) -> RestrictedLustre:
    """A file system that the service makes."""
    return RestrictedLustre(
        path=settings.path,
        places=settings.places(capacity_gib="capacity_gib", throughput_mbps_per_tib="throughput_mbps_per_tib"),
        capacity_gib=settings.capacity_gib,
        throughput_mbps_per_tib=settings.throughput_mbps_per_tib,
    )


def _sum(working: Any, spare: Any) -> Any:
    return UNRESOLVED if UNRESOLVED in (working, spare) else working + spare


def _volumes(group: Settings) -> tuple[Volume, ...]:
    volumes = []
    if group.says("volume_gib") or group.says("volume_kms_key"):
        volumes.append(_volume(group, group.volume_kms_key))
    if group.says("root_volume_kms_key"):
        path = group.at("root_volume_kms_key")
        volumes.append(Volume(path=path, size_gib=None, kms_key=group.root_volume_kms_key, root=True))
    return tuple(volumes)


def _volume(group: Settings, kms_key: Any) -> Volume:
    path = group.at("volume_gib")
    places = {"kms_key": f"{group.path}.volume_kms_key"}
    return Volume(path=path, places=places, size_gib=group.volume_gib, kms_key=kms_key)


def _override(settings: Settings | None) -> Any:
    if settings is None or settings.is_unreadable:
        return None if settings is None else UNRESOLVED
    subnets, groups = settings.subnet_ids, settings.security_group_ids
    where = {"subnets": settings.at("subnet_ids"), "security_groups": settings.at("security_group_ids")}
    return VpcConfig(
        path=settings.path,
        places=where,
        subnets=subnets
        if subnets is UNRESOLVED
        else tuple(
            Subnet(path=where["subnets"], id=each, availability_zone=UNRESOLVED, cidr=UNRESOLVED, public=UNRESOLVED)
            for each in subnets
        ),
        security_groups=groups
        if groups is UNRESOLVED
        else tuple(
            SecurityGroup(path=where["security_groups"], id=each, ingress=UNRESOLVED, egress=UNRESOLVED)
            for each in groups
        ),
    )


def _taint(taint: Settings) -> Taint:
    places = taint.places(key="key", value="value", effect="effect")
    return Taint(path=taint.path, places=places, key=taint.key, value=taint.value, effect=taint.effect)


def _scheduled(settings: Settings | None) -> Any:
    if settings is None or settings.is_unreadable:
        return None if settings is None else UNRESOLVED
    return ScheduledUpdate(
        path=settings.path,
        places=settings.places(schedule_expression="schedule_expression", deployment="deployment"),
        schedule_expression=settings.schedule_expression,
        deployment=_rolling(settings.deployment),
    )


def _patch(settings: Settings | None) -> Any:
    if settings is None or settings.is_unreadable:
        return None if settings is None else UNRESOLVED
    return AutoPatch(
        path=settings.path,
        places=settings.places(strategy="strategy", deployment="deployment"),
        strategy=settings.strategy,
        deployment=_rolling(settings.deployment),
    )


def _rolling(settings: Settings | None) -> RollingUpdate | None:
    if settings is None:
        return None
    names, back = settings.rollback_alarms, settings.rollback_maximum_batch_size
    return RollingUpdate(
        path=settings.path,
        places=settings.places(wait_interval_s="wait_interval_s", alarm_names="rollback_alarms"),
        maximum_batch_size=_batch(settings.maximum_batch_size),
        rollback_maximum_batch_size=None if back is None else _batch(back),
        wait_interval_s=settings.wait_interval_s,
        alarm_names=() if names is None else names,
    )


def _batch(settings: Settings) -> BatchSize:
    places = settings.places(type="type", value="value")
    return BatchSize(path=settings.path, places=places, type=settings.type, value=settings.value)

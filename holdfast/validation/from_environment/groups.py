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


def instance_group(
    group: Settings, *, mounts: tuple[Mount, ...], lifecycle: Lifecycle | None, lifecycle_place: str
) -> InstanceGroup:
    types, slurm, taints = group.instance_types, group.slurm, group.taints
    partition = None if slurm is None else slurm.partition
    return InstanceGroup(
        path=group.path,
        places={
            **group.places_in(InstanceGroup),
            **group.places(volumes="volume_gib"),
            "lifecycle": lifecycle_place,
            "node_type": f"{group.path}.slurm.node_type",
            "partitions": f"{group.path}.slurm.partition",
        },
        volumes=_volumes(group),
        mounts=mounts,
        lifecycle=lifecycle,
        node_type=None if slurm is None else slurm.node_type,
        partitions=partition if partition is UNRESOLVED else () if partition is None else (partition,),
        **{
            **group.values_in(InstanceGroup),
            "instance_types": () if types is None else types,
            "instance_count": _sum(group.instance_count, group.spare_count),
            "override_vpc": _override(group.override_vpc),
            "taints": taints if taints is UNRESOLVED else tuple(_taint(taint) for taint in taints),
            "scheduled_update": _scheduled(group.scheduled_update),
            "auto_patch": _patch(group.auto_patch),
        },
    )


def restricted_group(group: Settings) -> RestrictedGroup:
    return RestrictedGroup(
        path=group.path,
        places={**group.places_in(RestrictedGroup), **group.places(volumes="volume_gib")},
        volumes=(_volume(group, None),) if group.is_set("volume_gib") else (),
        **{
            **group.values_in(RestrictedGroup),
            "override_vpc": _override(group.override_vpc),
            "lustre": None if group.lustre is None else restricted_lustre(group.lustre),
        },
    )


def restricted_lustre(settings: Settings) -> RestrictedLustre:
    return RestrictedLustre(
        path=settings.path,
        places=settings.places_in(RestrictedLustre),
        **settings.values_in(RestrictedLustre),
    )


def _sum(working: Any, spare: Any) -> Any:
    return UNRESOLVED if UNRESOLVED in (working, spare) else working + spare


def _volumes(group: Settings) -> tuple[Volume, ...]:
    volumes = []
    if group.is_set("volume_gib") or group.is_set("volume_kms_key"):
        volumes.append(_volume(group, group.volume_kms_key))
    if group.is_set("root_volume_kms_key"):
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
    return Taint(path=taint.path, places=taint.places_in(Taint), **taint.values_in(Taint))


def _scheduled(settings: Settings | None) -> Any:
    if settings is None or settings.is_unreadable:
        return None if settings is None else UNRESOLVED
    return ScheduledUpdate(
        path=settings.path,
        places=settings.places_in(ScheduledUpdate),
        **settings.values_in(ScheduledUpdate) | {"deployment": _rolling(settings.deployment)},
    )


def _patch(settings: Settings | None) -> Any:
    if settings is None or settings.is_unreadable:
        return None if settings is None else UNRESOLVED
    return AutoPatch(
        path=settings.path,
        places=settings.places_in(AutoPatch),
        **settings.values_in(AutoPatch),
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
    return BatchSize(path=settings.path, places=settings.places_in(BatchSize), **settings.values_in(BatchSize))

from collections.abc import Callable
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
    return group.item(
        InstanceGroup,
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
        instance_types=() if types is None else types,
        instance_count=_sum(group.instance_count, group.spare_count),
        override_vpc=_optional(group.override_vpc, _override),
        taints=taints if taints is UNRESOLVED else tuple(taint.item(Taint) for taint in taints),
        scheduled_update=_optional(
            group.scheduled_update, lambda update: update.item(ScheduledUpdate, deployment=_rolling(update.deployment))
        ),
        auto_patch=_optional(group.auto_patch, lambda patch: patch.item(AutoPatch)),
    )


def restricted_group(group: Settings) -> RestrictedGroup:
    return group.item(
        RestrictedGroup,
        places={**group.places_in(RestrictedGroup), **group.places(volumes="volume_gib")},
        volumes=(_volume(group, None),) if group.is_set("volume_gib") else (),
        override_vpc=_optional(group.override_vpc, _override),
        lustre=None if group.lustre is None else restricted_lustre(group.lustre),
    )


def restricted_lustre(settings: Settings) -> RestrictedLustre:
    return settings.item(RestrictedLustre)


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


def _optional(settings: Settings | None, read: Callable[[Settings], Any]) -> Any:
    """None if absent, UNRESOLVED for what is no section."""
    return None if settings is None else UNRESOLVED if settings.is_unreadable else read(settings)


def _override(settings: Settings) -> VpcConfig:
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


def _rolling(settings: Settings | None) -> RollingUpdate | None:
    if settings is None:
        return None
    names, back = settings.rollback_alarms, settings.rollback_maximum_batch_size
    return settings.item(
        RollingUpdate,
        places={**settings.places_in(RollingUpdate), "alarm_names": settings.at("rollback_alarms")},
        maximum_batch_size=settings.maximum_batch_size.item(BatchSize),
        rollback_maximum_batch_size=None if back is None else back.item(BatchSize),
        alarm_names=() if names is None else names,
    )

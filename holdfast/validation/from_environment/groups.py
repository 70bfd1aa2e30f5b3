"""Instance groups of an environment file, as properties."""

from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.model import RestrictedGroup, VpcConfig
from holdfast.validation.translation import Properties, ebs_volume, properties_of
from holdfast.validation.translation import instance_group as translated


def zone_subnet(zone: str) -> str:
    """Name of the subnet of a further zone, as properties refer to it."""
    return f"nodes-{zone}"


def instance_group(
    group: Settings, *, mounts: list[Properties], lifecycle: Any, lifecycle_place: str, zones: Any
) -> Properties:
    slurm = group.slurm
    partition = None if slurm is None else slurm.partition
    return translated(
        group,
        places={
            "volumes": group.at("volume_gib"),
            "lifecycle": lifecycle_place,
            "node_type": f"{group.path}.slurm.node_type",
            "partitions": f"{group.path}.slurm.partition",
        },
        instance_count=_sum(group.instance_count, group.spare_count),
        volumes=_volumes(group),
        mounts=mounts,
        lifecycle=lifecycle,
        node_type=None if slurm is None else slurm.node_type,
        partitions=partition if partition in (None, UNRESOLVED) else [partition],
        override_vpc=_placed(group, zones),
    )


def restricted_group(group: Settings) -> Properties:
    return properties_of(
        RestrictedGroup,
        group,
        places={"volumes": group.at("volume_gib")},
        volumes=[_volume(group, None)] if group.is_set("volume_gib") else [],
        override_vpc=_override(group.override_vpc),
    )


def _sum(working: Any, spare: Any) -> Any:
    return UNRESOLVED if UNRESOLVED in (working, spare) else working + spare


def _volumes(group: Settings) -> list[Properties]:
    volumes = []
    if group.is_set("root_volume_kms_key"):
        path = group.at("root_volume_kms_key")
        volumes.append(ebs_volume(path=path, kms_key=group.root_volume_kms_key, root=True))
    if group.is_set("volume_gib") or group.is_set("volume_kms_key"):
        volumes.append(_volume(group, group.volume_kms_key))
    return volumes


def _volume(group: Settings, kms_key: Any) -> Properties:
    places = {"kms_key": f"{group.path}.volume_kms_key"}
    return ebs_volume(path=group.at("volume_gib"), places=places, size_gib=group.volume_gib, kms_key=kms_key)


def _placed(group: Settings, zones: Any) -> Properties | None:
    """Subnets of a group: its own, or that of its zone where that is a further one of a new network."""
    zone = group.availability_zone
    if group.override_vpc is not None or UNRESOLVED in (zone, zones) or zone not in zones:
        return _override(group.override_vpc)
    place = group.at("availability_zone")
    return properties_of(VpcConfig, path=place, subnets=[zone_subnet(zone)], security_groups=["nodes"])


def _override(settings: Settings | None) -> Properties | None:
    if settings is None or settings.is_unreadable:
        return settings if settings is None else UNRESOLVED
    return properties_of(
        VpcConfig,
        settings,
        places=settings.places(subnets="subnet_ids", security_groups="security_group_ids"),
        subnets=settings.subnet_ids,
        security_groups=settings.security_group_ids,
    )

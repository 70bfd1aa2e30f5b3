"""Properties of instance groups and of what they hold."""

from collections.abc import Mapping
from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED, Properties
from holdfast.validation.model import (
    AutoPatch,
    InstanceGroup,
    Lifecycle,
    Mount,
    RollingUpdate,
    ScheduledUpdate,
    Volume,
)
from holdfast.validation.translation.properties import Places, properties_of, structures

CAPACITIES: Mapping[str, Any] = {"spot": {"Spot": {}}, "on-demand": {"OnDemand": {}}}
MOUNTS = {"lustre": "FsxLustreConfig", "openzfs": "FsxOpenZfsConfig"}


def instance_group(group: Any, *, places: Places = None, **others: Any) -> Properties:
    """
    Return the properties of a group.

    Args:
        group: Has the attributes of ``model.InstanceGroup``, except those of ``others``.
        places: Places of attributes whose settings have other names.
        others: What a construct and a file have in different forms, as properties.
    """
    capacity = CAPACITIES.get(group.capacity, group.capacity)
    patch = structures(AutoPatch, group.auto_patch)
    return properties_of(InstanceGroup, group, places=places, capacity=capacity, auto_patch=patch, **others)


def scheduled_update(update: object, *, deployment: Any) -> Properties:
    found = properties_of(ScheduledUpdate, update)
    found.put(["DeploymentConfig"], deployment)
    return found


def deployment(described: object, *, wait_interval_s: Any, alarm_names: Any, places: Places = None) -> Properties:
    alarms = alarm_names if alarm_names is UNRESOLVED else [{"AlarmName": name} for name in alarm_names]
    return properties_of(RollingUpdate, described, places=places, wait_interval_s=wait_interval_s, alarm_names=alarms)


def ebs_volume(
    *, size_gib: Any = None, kms_key: Any = None, root: bool | None = None, path: str = "", places: Places = None
) -> Properties:
    volume = properties_of(Volume, path=path, places=places, size_gib=size_gib, kms_key=kms_key, root=root)
    return _named("EbsVolumeConfig", volume)


def mount(
    kind: str, *, dns_name: Any, mount_name: Any = None, mount_path: Any, path: str = "", places: Places = None
) -> Properties:
    """``kind``: ``lustre``, ``openzfs``."""
    found = properties_of(
        Mount, path=path, places=places, dns_name=dns_name, mount_name=mount_name, mount_path=mount_path
    )
    return _named(MOUNTS[kind], found)


def life_cycle_config(*, path: str = "", places: Places = None, **attributes: Any) -> Properties:
    """``attributes``: ``source_s3_uri``, ``on_create``, ``on_init_complete``."""
    return properties_of(Lifecycle, path=path, places=places, **attributes)


def vpc_config(
    *, subnets: Any, security_groups: Any, path: str = "", subnets_path: str = "", security_groups_path: str = ""
) -> Properties:
    found = Properties(path)
    found.put(["SecurityGroupIds"], security_groups, security_groups_path)
    found.put(["Subnets"], subnets, subnets_path)
    return found


def _named(name: str, held: Properties) -> Properties:
    found = Properties(held.path)
    found.put([name], held, held.path)
    return found

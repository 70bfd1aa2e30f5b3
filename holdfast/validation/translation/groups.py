"""Properties of instance groups and of what they hold."""

from collections.abc import Mapping
from typing import Any

from holdfast.validation.cloudformation import Properties
from holdfast.validation.model import InstanceGroup, Mount, Volume
from holdfast.validation.translation.properties import Places, properties_of

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
    return properties_of(InstanceGroup, group, places=places, capacity=capacity, **others)


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


def _named(name: str, held: Properties) -> Properties:
    found = Properties(held.path)
    found.put([name], held, held.path)
    return found

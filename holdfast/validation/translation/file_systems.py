"""Properties of FSx file systems, as Holdfast makes them."""

from typing import Any

from holdfast.validation.cloudformation import Properties
from holdfast.validation.model import LustreFileSystem, OpenZfsFileSystem
from holdfast.validation.translation.properties import Places, properties_of


def lustre(
    described: object = None, *, efa: Any, metadata_iops: Any, places: Places = None, **others: Any
) -> Properties:
    """
    Return the properties of a file system of type PERSISTENT_2 on SSD, Lustre 2.15 with metadata configuration.

    Args:
        metadata_iops: None: by capacity.
        others: Other attributes of ``model.LustreFileSystem``.
    """
    found = properties_of(
        LustreFileSystem,
        described,
        places=places,
        deployment_type="PERSISTENT_2",
        storage_type="SSD",
        version="2.15",
        efa=efa or None,
        metadata_mode="AUTOMATIC" if metadata_iops is None else "USER_PROVISIONED",
        metadata_iops=metadata_iops,
        **others,
    )
    found.put(["FileSystemType"], "LUSTRE")
    return found


def open_zfs(described: object = None, *, deployment_type: str = "SINGLE_AZ_2", **others: Any) -> Properties:
    found = properties_of(OpenZfsFileSystem, described, deployment_type=deployment_type, **others)
    found.put(["FileSystemType"], "OPENZFS")
    found.put(["StorageType"], "SSD")
    return found

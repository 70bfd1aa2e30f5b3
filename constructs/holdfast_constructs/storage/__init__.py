"""
What outlives nodes: file systems with their mounts, the data bucket, and the keys of all that is kept. Which nodes
mount a file system is left to groups and cluster, pods to eks_addons.
"""

from holdfast_constructs.storage.data_bucket import DataBucket, IDataBucket
from holdfast_constructs.storage.encryption_key import EncryptionKey
from holdfast_constructs.storage.key_reference import key_by_name
from holdfast_constructs.storage.lustre import DataRepositoryAssociation, ILustreFileSystem, LustreFileSystem
from holdfast_constructs.storage.mounts import LustreMount, Mount, OpenZfsMount
from holdfast_constructs.storage.open_zfs import IOpenZfsFileSystem, OpenZfsFileSystem

__all__ = [
    "DataBucket",
    "DataRepositoryAssociation",
    "EncryptionKey",
    "IDataBucket",
    "ILustreFileSystem",
    "IOpenZfsFileSystem",
    "LustreFileSystem",
    "LustreMount",
    "Mount",
    "OpenZfsFileSystem",
    "OpenZfsMount",
    "key_by_name",
]

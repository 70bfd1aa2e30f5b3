"""Storage that outlives nodes: file systems with mounts, the data bucket, keys."""

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

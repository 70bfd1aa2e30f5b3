"""File systems on the nodes of a Slurm cluster. On EKS, pods mount file systems through a CSI driver."""

from dataclasses import dataclass

from holdfast_constructs.storage.lustre import ILustreFileSystem
from holdfast_constructs.storage.open_zfs import IOpenZfsFileSystem


@dataclass(frozen=True, kw_only=True)
class LustreMount:
    file_system: ILustreFileSystem
    mount_path: str = "/fsx"
    """Default: "/fsx"."""


@dataclass(frozen=True, kw_only=True)
class OpenZfsMount:
    file_system: IOpenZfsFileSystem
    mount_path: str = "/home"
    """Default: "/home"."""


Mount = LustreMount | OpenZfsMount

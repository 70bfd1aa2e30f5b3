"""Shared file systems: a node whose Lustre does not answer looks healthy to everybody but its job."""

from collections.abc import Mapping, Sequence
from typing import Optional

from holdfast_agent.detectors.probing import Conditions, Mount, Probing
from holdfast_agent.signals import conditions

SHARED = frozenset(["lustre", "nfs", "nfs4", "ceph", "gpfs", "beegfs", "wekafs", "glusterfs", "cifs", "smb3"])
"""Not S3 through FUSE: each look would make an object."""
WELL_KNOWN = "/fsx"


class Mounts(Probing):
    """
    Args:
        paths: Mount points, all of which must be there and writable. Default: every shared file system, and /fsx
    """

    name = "mounts"
    means = Conditions(
        stalled=conditions.MOUNT_STALLED,
        read_only=conditions.FILESYSTEM_READ_ONLY,
        failed=conditions.FILESYSTEM_ERROR,
    )

    def __init__(
        self, *, paths: Optional[Sequence[str]] = None, node: str, mountinfo: str = "/proc/self/mountinfo"
    ) -> None:
        super().__init__(node=node, mountinfo=mountinfo)
        self._paths = paths

    def places(self, table: "Mapping[str, Mount]") -> "dict[str, str]":
        if self._paths is not None:
            return {path: path for path in self._paths}
        return {point: point for point, mount in table.items() if mount.kind in SHARED or point == WELL_KNOWN}

    def must_be_writable(self, point: str) -> bool:
        return self._paths is not None and point in self._paths

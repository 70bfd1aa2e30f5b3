"""Shared file systems: a node with an unresponsive Lustre otherwise looks healthy."""

from collections.abc import Mapping

from holdfast_agent.detectors.probing import Conditions, Mount, Probing
from holdfast_agent.signals import conditions

SHARED = frozenset(["lustre", "nfs", "nfs4", "ceph", "gpfs", "beegfs", "wekafs", "glusterfs", "cifs", "smb3"])
"""Not S3 through FUSE: each look would make an object."""
WELL_KNOWN = "/fsx"


class Mounts(Probing):
    name = "mounts"
    well_known = (WELL_KNOWN,)
    means = Conditions(
        stalled=conditions.MOUNT_STALLED,
        read_only=conditions.FILESYSTEM_READ_ONLY,
        failed=conditions.FILESYSTEM_ERROR,
    )

    def chosen(self, table: "Mapping[str, Mount]") -> "dict[str, str]":
        return {point: point for point, mount in table.items() if mount.kind in SHARED or point == WELL_KNOWN}

"""Local disks: full, read-only, failing, or unresponsive."""

from collections.abc import Mapping
from pathlib import Path

from holdfast_agent.detectors.probing import Conditions, Mount, Probing
from holdfast_agent.signals import conditions

KINDS = frozenset(["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"])
WELL_KNOWN = ("/opt/dlami/nvme", "/opt/sagemaker", "/scratch")
"""Mount points of local disks on HyperPod's AMIs."""
ROOM_OF_THE_ROOT = "/var/tmp"  # noqa: S108 - the file is opened without following a link, by the node's own name


class Disks(Probing):
    """All mounted disks, once each, and the root."""

    name = "disk"
    well_known = WELL_KNOWN
    interval_s = 5.0
    means = Conditions(
        stalled=conditions.MOUNT_STALLED,
        read_only=conditions.FILESYSTEM_READ_ONLY,
        failed=conditions.DISK_ERROR,
        full=conditions.DISK_FULL,
    )

    def chosen(self, table: "Mapping[str, Mount]") -> "dict[str, str]":
        found: dict[str, Mount] = {}
        for mount in sorted(table.values(), key=lambda mount: len(mount.point)):
            local = mount.kind in KINDS and Path(mount.point).is_dir()
            if mount.point == "/" or mount.point in WELL_KNOWN or (local and not mount.point.startswith("/fsx")):
                found.setdefault(mount.device, mount)
        return {mount.point: ROOM_OF_THE_ROOT if mount.point == "/" else mount.point for mount in found.values()}

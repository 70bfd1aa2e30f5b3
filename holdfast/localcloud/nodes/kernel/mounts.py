"""Table of mounts, /proc/PID/mountinfo (proc_pid_mountinfo(5))."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MountEntry:
    """
    One mount.

    Args:
        device: Major and minor number, ``8:1``.
        root: Mounted folder of the file system.
        point: Path in the process's view.
        kind: File system, such as ext4.
        options: Of the file system itself, not of this mount.
    """

    device: str
    root: str
    point: str
    kind: str
    options: tuple[str, ...]


def mount_entries(mountinfo: str) -> list[MountEntry]:
    """Return the rows of a table, in the kernel's order: a later mount hides earlier ones."""
    found = []
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        device, root, point = (_unescaped(field) for field in left.split(" ")[2:5])
        kind, _, options = right.split(" ", 2)
        found.append(MountEntry(device=device, root=root, point=point, kind=kind, options=tuple(options.split(","))))
    return found


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)

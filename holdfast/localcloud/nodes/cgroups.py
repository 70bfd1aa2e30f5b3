"""
Cgroups of nodes that run containers: version 2 alone, or each hierarchy of version 1.

They group a node's processes and containers, and block the machine's disks. The node's runtime sees its cgroup as the
root.
"""

import contextlib
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast.localcloud.nodes.kernel import boot, devices
from holdfast.localcloud.nodes.kernel.limits import DENIED_DEVICES
from holdfast.localcloud.nodes.kernel.mounts import mount_entries
from holdfast.localcloud.nodes.kernel.plan import Cgroup

_REMOVED_WITHIN_S = 5.0
_PAUSE_S = 0.02
_SYSTEM = Path("/sys/fs/cgroup")
_MOUNTS = "nodes/cgroups"
CONTROLLERS = ("cpu", "cpuset", "hugetlb", "io", "memory", "pids")
"""Of version 2: those that kubelets and runc use. Devices and the freezer are there without one."""
_QUIET = boot.MS_NOSUID | boot.MS_NODEV | boot.MS_NOEXEC


def make(*, home: Path, instance_id: str) -> list[Cgroup]:
    """Create the node's cgroup in each hierarchy. Raise OSError if this machine allows none."""
    made = []
    _mount_others(home)
    for controllers, top in _hierarchies(home):
        parent = top / _name(home)
        own = parent / instance_id
        own.mkdir(parents=True, exist_ok=True)
        if top == _SYSTEM:
            for folder in (top, parent):
                _pass_on(folder)
            devices.deny(own, DENIED_DEVICES)
            made.append(Cgroup(controllers="", name="", at=str(own)))
            continue
        if "cpuset" in controllers.split(","):  # nobody may join one that has no CPUs yet
            for folder in (parent, own):
                for knob in ("cpuset.cpus", "cpuset.mems"):
                    (folder / knob).write_text((folder.parent / knob).read_text())
        if "devices" in controllers.split(","):
            for rule in DENIED_DEVICES:
                (own / "devices.deny").write_text(rule)
        made.append(Cgroup(controllers=controllers, name=top.name, at=str(own)))
    return made


def of(*, home: Path, instance_id: str) -> list[Path]:
    places = [
        top / _name(home) / instance_id / (boot.OWN_PROCESSES if top == _SYSTEM else "")
        for _, top in _hierarchies(home)
    ]
    return [place for place in places if place.is_dir()]


def remove(*, home: Path, instance_id: str = "") -> None:
    """Remove one node's cgroups, without ``instance_id`` those of this home; retries for leftovers of containers."""
    deadline = time.monotonic() + _REMOVED_WITHIN_S
    while left := [folder for _, top in _hierarchies(home) for folder in _below(top / _name(home) / instance_id)]:
        for folder in left:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if time.monotonic() > deadline:
            return
        if any(folder.is_dir() for folder in left):
            time.sleep(_PAUSE_S)


def _name(home: Path) -> str:
    """
    Return the cgroup of a home's nodes, in every hierarchy, by the folder's identity: a chroot or container may have a
    home of the same path.
    """
    folder = home.stat()
    return "holdfast-" + hashlib.sha256(f"{folder.st_dev}:{folder.st_ino}".encode()).hexdigest()[:12]


def _pass_on(folder: Path) -> None:
    for name in (folder / "cgroup.controllers").read_text().split():
        if name in CONTROLLERS:
            (folder / "cgroup.subtree_control").write_text(f"+{name}")


def _below(top: Path) -> Iterator[Path]:
    if not top.is_dir():
        return
    with contextlib.suppress(FileNotFoundError):
        for child in top.iterdir():
            if child.is_dir():
                yield from _below(child)
    yield top


def close(*, home: Path) -> None:
    remove(home=home)
    for place in (home / _MOUNTS).glob("*"):
        if place.is_mount():
            boot.umount(str(place), flags=boot.MNT_DETACH)


def _mount_others(home: Path) -> None:
    """
    Mount hierarchies that the kernel has but nothing has mounted, for this home.

    Without one of them containerd does not notice out-of-memory kills in containers.
    """
    known = {controllers for controllers, _ in _hierarchies(home)}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        controllers = line.split(":")[1]
        if not controllers or controllers in known or controllers.startswith("name="):
            continue
        place = home / _MOUNTS / controllers
        place.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # a node does without it
            boot.mount(source="cgroup", target=str(place), kind="cgroup", flags=_QUIET, data=controllers)


def _hierarchies(home: Path) -> list[tuple[str, Path]]:
    """Return controllers, as in /proc/self/cgroup, and mount point of each mounted hierarchy."""
    mounted: dict[frozenset[str], Path] = {}
    unified: list[Path] = []
    for entry in mount_entries(Path("/proc/self/mountinfo").read_text()):
        at = Path(entry.point)
        if entry.kind == "cgroup" and (at.is_relative_to(_SYSTEM) or at.is_relative_to(home)):
            mounted.setdefault(frozenset(entry.options), at)
        if entry.kind == "cgroup2" and at.is_relative_to(_SYSTEM):
            unified.append(at)
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        controllers = line.split(":")[1]
        if not controllers:
            found += [("", top) for top in unified[:1]]
            continue
        desired = frozenset(controllers.split(","))
        found += [(controllers, top) for options, top in mounted.items() if desired <= options][:1]
    return found

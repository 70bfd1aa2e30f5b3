"""Observe this machine, for ``machine`` to judge."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from holdfast.localcloud.kubernetes.binaries.machine import Machine

_TOP = Path("/sys/fs/cgroup")
_OWN_CONTROLLERS = _TOP / "cgroup.controllers"
"""There in version 2 alone; beside version 1 the top is no cgroup."""
_NO_LIMIT = 1 << 60
"""Value of a cgroup without a limit: the largest number of pages."""


def observe_machine() -> Machine:
    status = Path("/proc/self/status").read_text()
    bounding = re.search(r"^CapBnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    cgroups = Path("/proc/self/cgroup").read_text()
    version = 2 if _OWN_CONTROLLERS.is_file() else 1
    return Machine(
        cgroups=version,
        controllers=frozenset(_OWN_CONTROLLERS.read_text().split() if version == 2 else v1_controllers(cgroups)),
        bounding=int(bounding[1], 16) if bounding else 0,
        memory_bytes=min([_available_bytes(), *_left_in_cgroups(cgroups)]),
        iptables=shutil.which("iptables", path=path) is not None,
        root=os.geteuid() == 0,
    )


def v1_controllers(cgroups: str) -> Iterator[str]:
    """Yield version 1 controllers from lines of /proc/self/cgroup; line 0 is version 2."""
    for line in cgroups.splitlines():
        number, controllers, _ = line.split(":", 2)
        if number != "0":
            yield from (name for name in controllers.split(",") if not name.startswith("name="))


def _available_bytes() -> int:
    found = re.search(r"^MemAvailable:\s*(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _left_in_cgroups(cgroups: str) -> Iterator[int]:
    """Yield the bytes left below each visible memory limit of this process's cgroups."""
    places = {controllers: path for _, controllers, path in (line.split(":", 2) for line in cgroups.splitlines())}
    of_memory = next((path for controllers, path in places.items() if "memory" in controllers.split(",")), None)
    if of_memory is not None:
        top, inside = _TOP / "memory", of_memory
        limit_name, usage_name, file_name = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
    else:
        top, inside = _TOP, places.get("", "/")
        limit_name, usage_name, file_name = "memory.max", "memory.current", "inactive_file"
    folder = top / inside.lstrip("/")
    for each in (folder, *folder.parents):
        if not each.is_relative_to(top) or not (each / limit_name).is_file():
            continue
        limit, usage = (each / limit_name).read_text().strip(), int((each / usage_name).read_text())
        reclaimable = re.search(rf"^{file_name} (\d+)$", (each / "memory.stat").read_text(), re.MULTILINE)
        if limit != "max" and int(limit) < _NO_LIMIT:
            yield int(limit) - usage + int(reclaimable[1] if reclaimable else 0)

"""Version-specific flags; ``versions.json`` has their sources. Flags of all versions are with the components."""

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from holdfast.localcloud.kubernetes.binaries.errors import BinariesError

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")


@cache
def knowledge() -> dict[str, Any]:
    """Return the rows of ``versions.json``: ``tried``, ``flags`` and ``feature_gates``."""
    known: dict[str, Any] = json.loads(files(__package__).joinpath("versions.json").read_text())
    return known


def minor(version: str) -> tuple[int, int]:
    """Parse "1.20.2" or "v1.35.0-rc.1" to (1, 20) or (1, 35). Raises: BinariesError."""
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    if numbers is None:
        raise BinariesError(f"got version {version!r}; allowed: such as 1.20.2")
    return int(numbers[1]), int(numbers[2])


def was_tried(version: str) -> bool:
    return minor(version) in {minor(each) for each in knowledge()["tried"]}


def version_flags(component: str, *, version: str) -> list[str]:
    if component not in COMPONENTS:
        raise ValueError(f"got component {component!r}; allowed: {', '.join(COMPONENTS)}")
    rows = knowledge()
    flags = [row["flag"] for row in rows["flags"] if row["component"] == component and _holds(row, version)]
    gates = [
        f"{row['gate']}=true"
        for row in rows["feature_gates"]
        if component in row["components"] and _holds(row, version)
    ]
    return [*flags, f"--feature-gates={','.join(gates)}"] if gates else flags


def _holds(row: dict[str, Any], version: str) -> bool:
    this = minor(version)
    return minor(row.get("from", "0.0")) <= this and ("until" not in row or this < minor(row["until"]))

"""Configuration of the Go program in ``program``, which stands in for images that cannot be pulled; see ``main.go``."""

import json
from collections.abc import Mapping

DEVICES = "/var/lib/kubelet/device-plugins/holdfast"
"""Folder of a node's devices, below the one folder that all device plugins' pods see."""
LUSTRE = "/run/holdfast/lustre"
"""Writable folder of the node for the FSx driver's pod: <DNS name>/<mount name> of what can be mounted."""


def accelerators(counts: Mapping[str, int]) -> tuple[str, bytes]:
    """Return path and content of a node's device plugins' configuration; ``counts``: extended resource -> devices."""
    return f"{DEVICES}/accelerators.json", json.dumps({name: count for name, count in counts.items() if count}).encode()


__all__ = ["DEVICES", "accelerators"]

"""
Programs that stand in for those of images that no local machine can pull: device plugins, a CSI driver, DNS.

They are one program in Go, in the folder ``program``, which the build of the binaries compiles from the vendored
sources of Kubernetes; ``main.go`` says how it is used. What is here in Python is what others have to tell it on a node.
Which image is stood in for by which command is decided with the images.
"""

import json
from collections.abc import Mapping

DEVICES = "/var/lib/kubelet/device-plugins/holdfast"
"""Where a node says what devices it has: below the one folder of the node that the pods of all device plugins see."""
LUSTRE = "/run/holdfast/lustre"
"""What the pod of the FSx driver must see of its node, writable: <DNS name>/<mount name> of what can be mounted."""


def accelerators(counts: Mapping[str, int]) -> tuple[str, bytes]:
    """
    Path and content of the file that tells a node's device plugins what to offer.

    Args:
        counts: Name of an extended resource, as ``nvidia.com/gpu``, and how many devices the node has of it. A plugin
            whose resource is missing or none registers nothing and waits.
    """
    return f"{DEVICES}/accelerators.json", json.dumps({name: count for name, count in counts.items() if count}).encode()


def unhealthy_mark(resource: str, device: int | str) -> str:
    """
    Path of a file on the node: while it is there, the plugin calls the device unhealthy.

    Args:
        device: Its index, from 0, or its id. The kubelet hears of it within two seconds, and of its end.
    """
    if "/" in str(device):
        raise ValueError(f"{device!r} is no device: give its index or its id")
    return f"{DEVICES}/{resource.replace('/', '_')}/{device}.unhealthy"


__all__ = ["DEVICES", "LUSTRE", "accelerators", "unhealthy_mark"]

"""Size of a node: its instance type's, in replacements of the kernel's files, which the kubelet reads (cAdvisor)."""

from pathlib import Path

from holdfast.catalog import instance_types
from holdfast.localcloud.home import made_once

NUMA_NODES = "/sys/devices/system/node"
MEMORY = "/proc/meminfo"
HUGE_PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
_HUGE_PAGES_FOR_EFA = 5128
"""EKS user guide, "Run machine learning training on Amazon EKS with Elastic Fabric Adapter", read 2026-11-30."""
_GIB_IN_KIB = 1 << 20
_SMALLEST = (2, 8)
"""Processors and GiB of a type that the catalog does not have."""
_RESOURCES = {"Trainium": "aws.amazon.com/neurondevice", "Inferentia": "aws.amazon.com/neurondevice"}
"""Prefix of an accelerator's name -> its resource; all others are GPUs."""
_SYSTEM_DAEMONS_MIB = 255
"""And 11 MiB per pod: memory that EKS's nodes keep from pods (awslabs/amazon-eks-ami, nodeadm, kubelet config)."""


def processors(instance_type: str) -> int:
    found = instance_types().get(instance_type)
    return found.vcpus if found else _SMALLEST[0]


def memory_kib(instance_type: str) -> int:
    found = instance_types().get(instance_type)
    return (found.memory_gib if found else _SMALLEST[1]) * _GIB_IN_KIB


def most_pods(instance_type: str) -> int:
    """Return the maximum of pods: 14 of 15 addresses of ml.g5.xlarge (awslabs/ai-on-sagemaker-hyperpod issue 142)."""
    found = instance_types().get(instance_type)
    return min(110, found.ipv4_per_interface - 1) if found else 14


def extended_resources(instance_type: str) -> dict[str, int]:
    found = instance_types().get(instance_type)
    if found is None:
        return {}
    device = next(
        (name for prefix, name in _RESOURCES.items() if found.accelerator.startswith(prefix)), "nvidia.com/gpu"
    )
    counts = {device: found.accelerators, "vpc.amazonaws.com/efa": found.efa_interfaces}
    return {name: count for name, count in counts.items() if count}


def kernel_files(instance_type: str, *, meminfo: str) -> dict[str, bytes]:
    """Return the node's /proc/meminfo with the instance type's total, and the huge pages of a type with EFA."""
    total = f"MemTotal:       {memory_kib(instance_type)} kB"
    lines = [total if line.startswith("MemTotal:") else line for line in meminfo.splitlines()]
    pages = _HUGE_PAGES_FOR_EFA if "vpc.amazonaws.com/efa" in extended_resources(instance_type) else 0
    return {MEMORY: ("\n".join(lines) + "\n").encode(), HUGE_PAGES: f"{pages}\n".encode()}


def kube_reserved(instance_type: str) -> dict[str, str]:
    """
    Return processors and memory reserved for the kubelet, as on EKS's nodes.

    Source: awslabs/amazon-eks-ami, nodeadm/internal/kubelet/config.go: 6 % of the first core, 1 % of the second, 0.5 %
    of the next two, 0.25 % of all others; 255 MiB and 11 MiB per pod.
    """
    cores = processors(instance_type)
    shares = [60, 10, 5, 5]
    millicores = sum(shares[:cores]) + 2.5 * max(0, cores - len(shares))
    return {"cpu": f"{int(millicores)}m", "memory": f"{_SYSTEM_DAEMONS_MIB + 11 * most_pods(instance_type)}Mi"}


def make_numa_nodes(directory: Path, *, instance_type: str) -> Path:
    """Create the node's folder of NUMA nodes once: one, with all processors and memory."""
    place = directory / instance_type
    if place.is_dir():
        return place
    with made_once(place) as fresh:
        node = fresh / "node0"
        for cpu in range(processors(instance_type)):
            (node / f"cpu{cpu}" / "topology").mkdir(parents=True, exist_ok=True)
            for knob, value in {"topology/core_id": cpu, "topology/physical_package_id": 0, "online": 1}.items():
                (node / f"cpu{cpu}" / knob).write_text(f"{value}\n")
        kib = memory_kib(instance_type)
        (node / "meminfo").write_text("".join(f"Node 0 {what}: {kib} kB\n" for what in ("MemTotal", "MemFree")))
    return place

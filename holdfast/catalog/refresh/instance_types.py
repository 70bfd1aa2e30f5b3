"""
Instance types: ``python -m holdfast.catalog``, after upgrades of botocore or moto.

Names come from botocore's enum of HyperPod instance types, facts from moto's copy of EC2 ``DescribeInstanceTypes``.
Both are pinned, so the result is reproducible.
"""

import gzip
import json
import re
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from holdfast.catalog.instances import INSTANCE_TYPES_FILE, Facts

NOT_IN_EC2_COPY: dict[str, Facts] = {
    # hyperpod-cli, training/constants.py of 2026-06. Its 0 EFA interfaces look wrong, and no better source was found.
    # It has no addresses either: 50 is what EC2 says of every other p5 and p6 type of 48xlarge. Its Grace CPUs are Arm,
    # with one thread per core as the other Arm types. 0 of memory and network: not known.
    "ml.p6e-gb200.36xlarge": {
        "vcpus": 144, "threads_per_core": 1, "memory_gib": 960, "accelerator": "GB200", "accelerators": 4,
        "efa_interfaces": 0, "ipv4_per_interface": 50,
        "accelerator_mib": 0, "network_gbps": 0.0, "card_gbps": 0.0,
    },
}  # fmt: skip


def write_instance_types() -> None:
    names = botocore_instance_types()
    ec2 = json.loads(gzip.decompress((files("moto") / "ec2/resources/instance_types.json.gz").read_bytes()))
    types = {name: NOT_IN_EC2_COPY.get(name) or _facts(ec2[name.removeprefix("ml.")]) for name in sorted(names)}
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(facts)}" for name, facts in types.items())
    source = (
        f"names: ClusterInstanceType of botocore {version('botocore')}; "
        f"facts: EC2 DescribeInstanceTypes as moto {version('moto')} carries it; "
        f"{', '.join(NOT_IN_EC2_COPY)}: hyperpod-cli training/constants.py, 2026-06"
    )
    INSTANCE_TYPES_FILE.write_text(
        f'{{\n  "source": {json.dumps(source)},\n  "instance_types": {{\n{lines}\n  }}\n}}\n'
    )


def botocore_instance_types() -> list[str]:
    import botocore.session

    shape = botocore.session.get_session().get_service_model("sagemaker").shape_for("ClusterInstanceType")
    return list(shape.enum)


def _facts(described: dict[str, Any]) -> Facts:
    gpus = described.get("GpuInfo", {}).get("Gpus", [])
    devices = gpus or described.get("NeuronInfo", {}).get("NeuronDevices", [])
    return {
        "vcpus": described["VCpuInfo"]["DefaultVCpus"],
        "threads_per_core": described["VCpuInfo"]["DefaultThreadsPerCore"],
        "memory_gib": described["MemoryInfo"]["SizeInMiB"] // 1024,
        "accelerator": devices[0]["Name"] if devices else "",
        "accelerators": sum(device["Count"] for device in devices),
        "efa_interfaces": described["NetworkInfo"].get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "ipv4_per_interface": described["NetworkInfo"]["Ipv4AddressesPerInterface"],
        "accelerator_mib": devices[0]["MemoryInfo"]["SizeInMiB"] if devices else 0,
        "network_gbps": _gbps(described["NetworkInfo"]["NetworkPerformance"]),
        "card_gbps": described["NetworkInfo"]["NetworkCards"][0].get("PeakBandwidthInGbps", 0.0),
    }


def _gbps(performance: str) -> float:
    """Parse what EC2 has as text: "3200 Gigabit", "4x 100 Gigabit", "Up to 25 Gigabit"; 0 for "Moderate"."""
    found = re.fullmatch(r"(?:Up to )?(?:(\d+)x )?([\d.]+) Gigabit", performance)
    return float(found[1] or 1) * float(found[2]) if found else 0.0

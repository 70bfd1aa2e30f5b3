"""
Limits and descriptions of FSx for OpenZFS file systems. Pure.

Source: FSx API reference, CreateFileSystemOpenZFSConfiguration, and the user guide's page on performance.
"""

import secrets
from typing import Any

from holdfast.catalog import bounds, limits
from holdfast.localcloud.aws.fsx import rules

THROUGHPUTS: dict[str, list[int]] = limits("openzfs_throughput_mbps")
CAPACITY_GIB = bounds("openzfs_capacity_gib")
IOPS_PER_GIB = 3
DEFAULTS = {
    "AutomaticBackupRetentionDays": 0,
    "CopyTagsToBackups": False,
    "CopyTagsToVolumes": False,
    "WeeklyMaintenanceStartTime": "7:05:00",
}


def described(
    given: dict[str, Any] | None, *, capacity: int | None, storage_type: str, subnets: list[str]
) -> dict[str, Any]:
    if given is None:
        raise rules.bad_request("OpenZFSConfiguration must be specified for an OpenZFS file system.")
    _check(given, capacity=capacity, storage_type=storage_type)
    desired = 2 if given["DeploymentType"] == "MULTI_AZ_1" else 1
    if len(subnets) != desired:
        raise rules.bad_request(
            f"Deployment type {given['DeploymentType']} needs {desired} subnet IDs; {len(subnets)} given."
        )
    if desired > 1 and given.get("PreferredSubnetId") not in subnets:
        raise rules.bad_request("PreferredSubnetId must be one of the two subnets.")
    kept = {key: value for key, value in given.items() if key != "RootVolumeConfiguration"}
    iops = {"Mode": "AUTOMATIC", "Iops": (capacity or 0) * IOPS_PER_GIB}
    configuration = {
        **DEFAULTS,
        **kept,
        "DiskIopsConfiguration": {**iops, **given.get("DiskIopsConfiguration", {})},
        "RootVolumeId": f"fsvol-{secrets.token_hex(9)[:17]}",
    }
    return {"OpenZFSConfiguration": configuration}


def changed(record: dict[str, Any], changes: dict[str, Any], capacity: int) -> dict[str, Any]:
    merged: dict[str, Any] = {**record["OpenZFSConfiguration"], **changes}
    _check(merged, capacity=capacity, storage_type=record["StorageType"])
    return merged


def _check(configuration: dict[str, Any], *, capacity: int | None, storage_type: str) -> None:
    if storage_type != "SSD":
        raise rules.not_available(f"OpenZFS storage of type {storage_type}; use SSD")
    if capacity is None or not CAPACITY_GIB.has(capacity):
        raise rules.bad_request(
            f"The storage capacity {capacity} GiB is not valid. Valid values are {CAPACITY_GIB} GiB."
        )
    deployment, throughput = configuration["DeploymentType"], configuration["ThroughputCapacity"]
    if throughput not in THROUGHPUTS[deployment]:
        allowed = ", ".join(str(one) for one in THROUGHPUTS[deployment])
        raise rules.bad_request(
            f"ThroughputCapacity {throughput} is not valid for deployment type {deployment}. "
            f"Valid values are {allowed} MB/s."
        )

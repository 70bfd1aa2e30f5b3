"""Clusters as plain values, parsed from API answers."""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.localcloud.kubernetes import Taint

_HOST_NAME = re.compile(r"ip-(\d+)-(\d+)-(\d+)-(\d+)")

PENDING, RUNNING, FAILURE = "Pending", "Running", "Failure"
SHUTTING_DOWN, NOT_FOUND = "ShuttingDown", "NotFound"
CHECKING = "DeepHealthCheckInProgress"
DETACHING, ATTACHING = "DetachInProgress", "AttachInProgress"
"""Of an instance that moves to another group."""
SYSTEM_UPDATING = "SystemUpdating"
"""Of an instance, and of a cluster, while its software is updated."""

MAX_ATTEMPTS = 3
"""Replacements of one place in a row before it is left as Failure; with continuous provisioning, before it rests."""

CONTROLLER, COMPUTE, LOGIN = "Controller", "Compute", "Login"

CREATING, IN_SERVICE, UPDATING = "Creating", "InService", "Updating"
ROLLING_BACK, DELETING, FAILED = "RollingBack", "Deleting", "Failed"


LUSTRE, OPENZFS = "LUSTRE", "OPENZFS"

ROOT_VOLUME = "fsx"
"""Export path of an OpenZFS file system's root volume (FSx for OpenZFS user guide, mounting)."""


@dataclass(frozen=True, kw_only=True)
class FsxMount:
    """Mount of an FSx file system in a group, from InstanceStorageConfigs."""

    dns_name: str
    mount_name: str
    mount_path: str
    type: str = LUSTRE


@dataclass(frozen=True, kw_only=True)
class Group:
    name: str
    instance_type: str
    slurm_role: str = ""
    """Controller, Compute, Login, or empty when Slurm is not configured through the API."""
    partitions: tuple[str, ...] = ()
    lifecycle_uri: str = ""
    on_create: str = ""
    on_init_complete: str = ""
    mounts: tuple[FsxMount, ...] = ()
    role: str = ""
    """ARN of the execution role of its instances."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of its Kubernetes Nodes."""
    taints: tuple[Taint, ...] = ()
    has_volume: bool = False
    """Its instances have a volume beside the root's."""
    threads_per_core: int = 1
    """Default: 1, as in the API."""
    deep_checks: tuple[str, ...] = ()
    """Deep health checks that its instances pass before they are in service."""

    @property
    def script(self) -> str:
        return self.on_create or self.on_init_complete

    @property
    def has_ami_configuration(self) -> bool:
        """
        Return True if HyperPod configures mounts and Slurm itself. With OnCreate it "does not run AMI-based
        configuration and does not start Slurm" (SageMaker developer guide, "Node lifecycle configuration options").
        """
        return not self.on_create


@dataclass(frozen=True, kw_only=True)
class Instance:
    instance_id: str
    group: str
    address: str
    status: str = PENDING

    @property
    def host_name(self) -> str:
        return host_name(self.address)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    arn: str
    name: str
    status: str
    groups: tuple[Group, ...] = ()
    instances: tuple[Instance, ...] = ()
    node_recovery: str = "Automatic"
    continuous: bool = False
    """True if instances are provisioned after the cluster is in service, with retries."""
    subnets: tuple[str, ...] = ()
    eks_arn: str = ""
    """Of the cluster of EKS that orchestrates it; empty under Slurm."""

    @property
    def kubernetes(self) -> bool:
        return bool(self.eks_arn)

    @property
    def cluster_id(self) -> str:
        return self.arn.rpartition("/")[2]

    def group(self, name: str) -> Group:
        """Return the group called ``name``; a bare one if it is no longer described."""
        return next((group for group in self.groups if group.name == name), Group(name=name, instance_type=""))

    def instance(self, instance_id: str) -> Instance | None:
        return next((one for one in self.instances if one.instance_id == instance_id), None)

    def with_role(self, role: str) -> tuple[Instance, ...]:
        names = {group.name for group in self.groups if group.slurm_role == role}
        found = [one for one in self.instances if one.group in names]
        return tuple(sorted(found, key=lambda one: ipaddress.ip_address(one.address)))


@dataclass(frozen=True, kw_only=True)
class FileSystem:
    file_system_id: str
    dns_name: str
    mount_name: str
    lifecycle: str
    type: str = LUSTRE


@dataclass(frozen=True, kw_only=True)
class Association:
    """Data repository association: a path of a file system linked with a prefix of a bucket."""

    association_id: str
    file_system_id: str
    path: str
    bucket: str
    prefix: str
    """Empty, or ending with a slash."""
    imports: frozenset[str]
    """Of NEW, CHANGED, DELETED."""
    exports: frozenset[str]


def host_name(address: str) -> str:
    return "ip-" + address.replace(".", "-")


def address_of(name: str) -> str | None:
    match = _HOST_NAME.match(name)
    return ".".join(match.groups()) if match else None


def parse_cluster(described: Mapping[str, Any], *, nodes: Iterable[tuple[Mapping[str, Any], str]]) -> Cluster:
    """Parse DescribeCluster's answer and (ListClusterNodes summary, private address) pairs."""
    return Cluster(
        arn=described["ClusterArn"],
        name=described["ClusterName"],
        status=described["ClusterStatus"],
        groups=tuple(
            _parse_group(group)
            for key in ("InstanceGroups", "RestrictedInstanceGroups")
            for group in described.get(key, ())
        ),
        instances=tuple(
            Instance(
                instance_id=summary["InstanceId"],
                group=summary["InstanceGroupName"],
                address=address,
                status=summary["InstanceStatus"]["Status"],
            )
            for summary, address in nodes
        ),
        node_recovery=described.get("NodeRecovery", "Automatic"),
        continuous=described.get("NodeProvisioningMode") == "Continuous",
        subnets=tuple(described.get("VpcConfig", {}).get("Subnets", ())),
        eks_arn=described.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn", ""),
    )


def _parse_group(group: Mapping[str, Any]) -> Group:
    slurm, lifecycle = group.get("SlurmConfig", {}), group.get("LifeCycleConfig", {})
    return Group(
        name=group["InstanceGroupName"],
        instance_type=group.get("InstanceType", "")
        or next(iter(group.get("InstanceRequirements", {}).get("CurrentInstanceTypes", ())), ""),
        slurm_role=slurm.get("NodeType", ""),
        partitions=tuple(slurm.get("PartitionNames", ())),
        lifecycle_uri=lifecycle.get("SourceS3Uri", ""),
        on_create=lifecycle.get("OnCreate", ""),
        on_init_complete=lifecycle.get("OnInitComplete", ""),
        mounts=tuple(_parse_mounts(group.get("InstanceStorageConfigs", ()))),
        role=group.get("ExecutionRole", ""),
        has_volume=any(
            "EbsVolumeConfig" in one and not one["EbsVolumeConfig"].get("RootVolume")
            for one in group.get("InstanceStorageConfigs", ())
        ),
        threads_per_core=group.get("ThreadsPerCore", 1),
        deep_checks=tuple(group.get("OnStartDeepHealthChecks", ())),
        labels=dict(_asked(group).get("Labels", {})),
        taints=tuple(
            Taint(key=one["Key"], value=one.get("Value", ""), effect=one["Effect"])
            for one in _asked(group).get("Taints", ())
        ),
    )


def _asked(group: Mapping[str, Any]) -> Mapping[str, Any]:
    reported = group.get("KubernetesConfig", {})
    return {
        "Labels": reported.get("DesiredLabels", reported.get("Labels", {})),
        "Taints": reported.get("DesiredTaints", reported.get("Taints", ())),
    }


def _parse_mounts(configs: Iterable[Mapping[str, Any]]) -> Iterator[FsxMount]:
    for config in configs:
        lustre, openzfs = config.get("FsxLustreConfig"), config.get("FsxOpenZfsConfig")
        if lustre:
            path = lustre.get("MountPath", "/fsx")
            yield FsxMount(dns_name=lustre["DnsName"], mount_name=lustre["MountName"], mount_path=path)
        if openzfs:
            path = openzfs.get("MountPath", "/home")
            yield FsxMount(dns_name=openzfs["DnsName"], mount_name=ROOT_VOLUME, mount_path=path, type=OPENZFS)


def parse_file_system(described: Mapping[str, Any]) -> FileSystem:
    return FileSystem(
        file_system_id=described["FileSystemId"],
        dns_name=described.get("DNSName", ""),
        mount_name=described.get("LustreConfiguration", {}).get("MountName", "") or ROOT_VOLUME,
        lifecycle=described.get("Lifecycle", ""),
        type=described.get("FileSystemType", LUSTRE),
    )


def parse_association(described: Mapping[str, Any]) -> Association | None:
    """Parse one entry of DescribeDataRepositoryAssociations; None if it is not in use or not with S3."""
    bucket, _, prefix = described.get("DataRepositoryPath", "").removeprefix("s3://").partition("/")
    if described.get("Lifecycle") not in ("AVAILABLE", "UPDATING", "MISCONFIGURED") or not bucket:
        return None
    s3 = described.get("S3", {})
    return Association(
        association_id=described["AssociationId"],
        file_system_id=described["FileSystemId"],
        path=described.get("FileSystemPath", "/"),
        bucket=bucket,
        prefix=prefix if not prefix or prefix.endswith("/") else prefix + "/",
        imports=frozenset(s3.get("AutoImportPolicy", {}).get("Events", ())),
        exports=frozenset(s3.get("AutoExportPolicy", {}).get("Events", ())),
    )

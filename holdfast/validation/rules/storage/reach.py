"""6xx: whether file systems are reached and used, and OpenZFS."""

from collections.abc import Iterator

from holdfast.catalog import bounds, limits
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.model import (
    Deployment,
    EnvironmentFile,
    InstanceGroup,
    LustreFileSystem,
    OpenZfsFileSystem,
    SecurityGroup,
    VpcConfig,
    mounting,
)
from holdfast.validation.rules.network import block_of, vpc_of
from holdfast.validation.rules.storage.lustre import FSX

CAPACITY_GIB = bounds("openzfs_capacity_gib")
LUSTRE_PORTS = ((988, 988), (1018, 1023))
OPENZFS_PORTS = ((111, 111), (2049, 2049), (20001, 20003))


@rule(
    "HF615",
    title="Security groups let nodes and Lustre reach each other",
    each=LustreFileSystem,
    source="FSx for Lustre user guide, 'File system access control with Amazon VPC': ports 988 and 1018-1023",
)
def lustre_ports(lustre: LustreFileSystem, deployment: Deployment) -> Iterator[Broken]:
    """
    In both directions, between the file system's security groups and those of the nodes. FSx refuses a file system
    whose groups do not let Lustre through; nodes that are shut out hang in the mount.
    """
    for group in mounting(lustre.id, deployment):
        yield from _ports(lustre.vpc, group, deployment, LUSTRE_PORTS)


@rule(
    "HF616",
    title="Security groups let nodes and OpenZFS reach each other",
    each=OpenZfsFileSystem,
    source="FSx for OpenZFS user guide, 'File system access control with Amazon VPC'",
)
def openzfs_ports(openzfs: OpenZfsFileSystem, deployment: Deployment) -> Iterator[Broken]:
    """NFS uses ports 111, 2049 and 20001 to 20003."""
    for group in mounting(openzfs.id, deployment):
        yield from _ports(openzfs.vpc, group, deployment, OPENZFS_PORTS)


@rule(
    "HF626",
    title="OpenZFS has a throughput and a capacity that FSx offers",
    each=OpenZfsFileSystem,
    source=f"{FSX}, CreateFileSystemOpenZFSConfiguration",
)
def openzfs_size(openzfs: OpenZfsFileSystem, _: Deployment) -> Iterator[Broken]:
    """Which throughputs there are depends on the deployment type. Capacities are 64 to 524288 GiB."""
    tiers = limits("openzfs_throughput_mbps").get(openzfs.deployment_type)
    if tiers is not None and openzfs.throughput_mbps not in tiers:
        yield refused(
            openzfs.at("throughput_mbps"),
            f"{openzfs.throughput_mbps} MB/s",
            allowed=f"one of {', '.join(map(str, tiers))}",
            fix=f"write {tiers[0]}",
        )
    if openzfs.capacity_gib is not None and not CAPACITY_GIB.has(openzfs.capacity_gib):
        yield refused(
            openzfs.at("capacity_gib"),
            f"{openzfs.capacity_gib} GiB",
            allowed=f"{CAPACITY_GIB} GiB",
            fix=f"write {CAPACITY_GIB.least}",
        )


@rule(
    "HF629",
    severity="warning",
    title="File systems are mounted by some instance group",
    each=EnvironmentFile,
    source="Holdfast; under EKS pods mount Lustre through its CSI driver",
)
def mounted_somewhere(_: EnvironmentFile, deployment: Deployment) -> Iterator[Broken]:
    """
    A file system that no node mounts costs as much as one that all mount. Under EKS nodes mount none: `storage.home` is
    for Slurm.
    """
    mounted = {mount.file_system for group in deployment.cluster.instance_groups for mount in group.mounts}
    under_slurm = deployment.cluster.eks is None
    used_by_pods = () if under_slurm else tuple(lustre.id for lustre in deployment.lustre_file_systems)
    file_systems: tuple[LustreFileSystem | OpenZfsFileSystem, ...] = (
        *deployment.lustre_file_systems,
        *deployment.openzfs_file_systems,
    )
    for each in file_systems:
        if each.id not in mounted and each.id not in used_by_pods:
            yield Broken(
                path=each.path,
                message="no instance group mounts this file system",
                fix="let a group mount it, or remove it",
            )


def _ports(
    file_system: VpcConfig, group: InstanceGroup, deployment: Deployment, ports: tuple[tuple[int, int], ...]
) -> Iterator[Broken]:
    nodes = vpc_of(group, deployment.cluster)
    if nodes is None or not nodes.security_groups:
        return
    if not file_system.security_groups and all(each.is_known("ingress") for each in nodes.security_groups):
        yield refused(
            file_system.at("security_groups"),
            "no security groups, so the file system gets the default one of the VPC, in which no node is",
            allowed="a group that nodes reach it through",
            fix=f"name the security group of {group.name} in {file_system.word('security_groups')}",
        )
    if not file_system.security_groups:
        return
    for source, target, end in (
        (nodes, file_system, "the file system"),
        (file_system, nodes, f"the nodes of {group.name}"),
    ):
        closed = [
            f"{low}-{high}" if high > low else str(low)
            for low, high in ports
            if not any(_lets_in(each, low, high, source) for each in target.security_groups)
        ]
        if closed:
            yield refused(
                target.security_groups[0].at("ingress"),
                f"no rule that lets port {', '.join(closed)} into {end}",
                allowed="these ports open from each to the other",
                fix="add rules between the two security groups",
            )
            return


def _lets_in(target: SecurityGroup, low: int, high: int, source: VpcConfig) -> bool:
    members = {group.id for group in source.security_groups}
    return any(
        traffic.covers(low, high) and (traffic.peer in members or _is_from(traffic.peer, source))
        for traffic in target.ingress
    )


def _is_from(peer: str, source: VpcConfig) -> bool:
    block = block_of(peer)
    if block is None or block.prefixlen == 0:
        return block is not None
    own = [block_of(subnet.cidr) for subnet in source.subnets]
    return all(subnet is not None and subnet.subnet_of(block) for subnet in own)

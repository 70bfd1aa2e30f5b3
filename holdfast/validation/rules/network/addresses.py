"""2xx: blocks of addresses, and whether nodes fit into them."""

import ipaddress
from collections.abc import Iterator

from holdfast.catalog import addresses_needed, instance_types, prefix_length_for
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Cluster, Deployment, Group, Network, Subnet, VpcConfig, groups_of
from holdfast.validation.rules.network.subnets import PREREQUISITES, all_subnets, all_vpcs

TAKEN = ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4")
"""Blocks of this host, of links and of multicast."""


@rule(
    "HF209",
    title="The nodes' subnet has enough addresses",
    each=Cluster,
    source=f"{PREREQUISITES}: 32 addresses per P5 under Slurm, 81 under EKS; holdfast/catalog",
)
def room_for_nodes(cluster: Cluster, deployment: Deployment) -> Iterator[Broken]:
    """
    Every EFA interface takes an address, and under EKS pods take more. A subnet cannot grow, so the nodes that are
    there twice while they are replaced are counted too. In a new network of an environment file the nodes' subnet is
    half of `network.cidr`.
    """
    own: dict[VpcConfig, list[Group]] = {}
    for group in groups_of(cluster):
        where = cluster.vpc if group.override_vpc is None else group.override_vpc
        if where is not None:
            own.setdefault(where, []).append(group)
    for vpc, members in own.items():
        yield from _room(vpc, members, cluster, deployment)


def _room(vpc: VpcConfig, members: list[Group], cluster: Cluster, deployment: Deployment) -> Iterator[Broken]:
    groups = [(_largest(group), group.instance_count) for group in members]
    needed = addresses_needed(
        [(name, count) for name, count in groups if name is not None],
        orchestrator="slurm" if cluster.eks is None else "eks",
    )
    if vpc is not cluster.vpc and not all(subnet.is_known("cidr") for subnet in vpc.subnets):
        return
    blocks = [block for subnet in vpc.subnets if (block := block_of(subnet.cidr)) is not None]
    if not blocks or len(blocks) < len(vpc.subnets):
        return
    room = sum(block.num_addresses for block in blocks)
    if room < needed:
        prefix = prefix_length_for(needed)
        halved = deployment.file is not None and deployment.file.new_network
        fix = f"write a block of /{prefix - halved}" if prefix - halved >= 16 else "take fewer nodes"
        yield refused(
            vpc.subnets[0].at("cidr"),
            f"{', '.join(map(str, blocks))} with {room} addresses for nodes",
            allowed=f"room for the {needed} addresses that the groups need",
            fix=fix,
        )


@rule("HF214", title="The VPC's block is /16 to /28", each=Network, source="VPC user guide, 'VPC CIDR blocks'")
def size_of_vpc(network: Network, _: Deployment) -> Iterator[Broken]:
    """Host bits have to be zero. EC2 keeps 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16 and 224.0.0.0/4 for other uses."""
    block = block_of(network.cidr)
    taken = next((each for each in TAKEN if block is not None and block.overlaps(ipaddress.IPv4Network(each))), None)
    if taken is not None:
        yield refused(
            network.at("cidr"),
            f"{network.cidr}, in {taken}, which no VPC has",
            allowed="a block of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16",
            fix="write a block like 10.1.0.0/16",
        )
        return
    if network.cidr is not None and (block is None or not 16 <= block.prefixlen <= 28):
        yield refused(
            network.at("cidr"),
            show(network.cidr),
            allowed="an IPv4 block from /16 to /28 whose host bits are zero",
            fix="write a block like 10.1.0.0/16",
        )


@rule(
    "HF215",
    title="Subnets are inside their VPC's CIDR block",
    each=Subnet,
    source="VPC user guide, 'Subnet CIDR blocks'",
)
def subnet_in_vpc(subnet: Subnet, _: Deployment) -> Iterator[Broken]:
    """
    EC2 refuses a subnet outside the VPC's blocks, the secondary ones included. For an existing network one of the two
    blocks is written wrong.
    """
    block = block_of(subnet.cidr)
    vpc = [other for other in map(block_of, subnet.vpc_cidrs) if other is not None]
    if block is not None and vpc and not any(block.subnet_of(other) for other in vpc):
        blocks = " or ".join(map(str, vpc))
        yield refused(
            subnet.at("cidr"), subnet.cidr, allowed=f"a block inside {blocks}", fix="correct one of the blocks"
        )


@rule(
    "HF216",
    severity="warning",
    title="The VPC's CIDR block is a private one",
    each=Network,
    source="RFC 1918, RFC 6598",
)
def private_block(network: Network, _: Deployment) -> Iterator[Broken]:
    """EC2 takes any block. Inside a public one, nodes cannot reach those who own its addresses on the internet."""
    block = block_of(network.cidr)
    if block is not None and not block.is_private and not block.subnet_of(ipaddress.IPv4Network("100.64.0.0/10")):
        yield Broken(
            path=network.at("cidr"),
            message=f"{network.cidr} belongs to others on the internet, whom nodes cannot reach",
            fix="take a block of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16",
        )


@rule(
    "HF217",
    severity="warning",
    title="The VPC does not overlap the addresses of container engines",
    each=Network,
    source="EKS user guide, 'View Amazon EKS networking requirements': 172.17.0.0/16",
)
def docker_block(network: Network, _: Deployment) -> Iterator[Broken]:
    """
    Container engines put their bridge on 172.17.0.0/16. Nodes with such addresses are not reached from containers.
    """
    block = block_of(network.cidr)
    if block is not None and block.overlaps(ipaddress.IPv4Network("172.17.0.0/16")):
        yield Broken(
            path=network.at("cidr"),
            message=f"{network.cidr} overlaps 172.17.0.0/16, where container engines put their bridge",
            fix="take another block",
        )


@rule("HF219", title="Nodes' subnets do not overlap", each=Cluster, source="VPC user guide, 'Subnet CIDR blocks'")
def subnets_do_not_overlap(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """EC2 refuses the second of two overlapping subnets of a VPC."""
    seen: list[ipaddress.IPv4Network] = []
    for subnet in all_subnets(all_vpcs(cluster)):
        block = block_of(subnet.cidr) if subnet.is_known("cidr") else None
        if block is None:
            continue
        for other in seen:
            if block.overlaps(other):
                yield refused(
                    subnet.at("cidr"), str(block), allowed=f"what does not overlap {other}", fix="change one of them"
                )
        seen.append(block)


def _largest(group: Group) -> str | None:
    known = [name for name in group.types if name in instance_types()]
    return max(known, key=lambda name: instance_types()[name].efa_interfaces, default=None)


def block_of(text: str | None) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(text) if text is not None and "/" in text else None
    except ValueError:
        return None

"""3xx: addresses of services, and nodes for what runs on the cluster."""

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence

from holdfast.catalog import known_types
from holdfast.catalog.facts import page_fact
from holdfast.validation.cloudformation import Resource
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import App, Deployment, Eks, InstanceGroup
from holdfast.validation.rules.eks.lookups import CLUSTER, SERVICE_BLOCKS, cluster_of, network_of, vpcs_of

PODS_OF_ADDONS = 12
_USUAL_SERVICES = ipaddress.IPv4Network("172.20.0.0/16")


@rule(
    "HF344",
    title="Kubernetes' service addresses do not overlap the VPC",
    each=App,
    source="EKS API reference, KubernetesNetworkConfigRequest: serviceIpv4Cidr",
)
def service_block(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Services of Kubernetes have a block of their own, /24 to /12 inside 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16,
    that overlaps no block of the VPC. It cannot be changed later.
    """
    for _cluster, node in app.each(CLUSTER):
        block = node.get("KubernetesNetworkConfig", "ServiceIpv4Cidr")
        network = network_of(block.value)
        if not isinstance(block.value, str):
            continue
        if (
            network is None
            or not 12 <= network.prefixlen <= 24
            or not any(network.subnet_of(ipaddress.IPv4Network(each)) for each in SERVICE_BLOCKS)
        ):
            yield refused(
                block.path,
                show(block.value),
                allowed="a private block of /12 to /24 whose host bits are zero",
                fix="write 172.20.0.0/16",
            )
            continue
        for vpc in vpcs_of(app, node.get("ResourcesVpcConfig", "SubnetIds")):
            for other in _blocks(app, vpc):
                if network.overlaps(other):
                    yield refused(
                        block.path,
                        f"{network}, which overlaps {other} of {vpc.logical_id}",
                        allowed="a block that the VPC does not have",
                        fix=f"write {'10.100.0.0/16' if other.overlaps(_USUAL_SERVICES) else _USUAL_SERVICES}",
                    )


@rule(
    "HF353",
    title="An EKS cluster orchestrates one HyperPod cluster",
    each=App,
    source="SageMaker developer guide, 'Orchestrating SageMaker HyperPod clusters with Amazon EKS': one-to-one mapping",
)
def one_hyperpod_cluster(app: App, _: Deployment) -> Iterator[Broken]:
    """An EKS cluster and a HyperPod cluster belong to each other. More nodes are more instance groups."""
    seen: dict[object, Resource] = {}
    for hyperpod, node in app.each("AWS::SageMaker::Cluster"):
        arn = node.get("Orchestrator", "Eks", "ClusterArn")
        eks = arn.resource(CLUSTER) or (arn.value if isinstance(arn.value, str) else None)
        if eks is None:
            continue
        if eks in seen:
            yield refused(
                arn.path,
                f"the EKS cluster of {seen[eks].logical_id}",
                allowed="an EKS cluster of its own",
                fix=f"make its groups groups of {seen[eks].logical_id}, or another EKS cluster",
            )
        seen.setdefault(eks, hyperpod)


@rule(
    "HF341",
    title="Managed node groups have settings that EKS accepts",
    each=App,
    source="EKS user guide, 'Create a managed node group'; 'AL2 AMIs transition'",
)
def nodegroups(app: App, _: Deployment) -> Iterator[Broken]:
    """
    The desired size is between the least and the most. Amazon Linux 2 ends with Kubernetes 1.32. An AMI type belongs to
    the processor of the instance types.
    """
    last = int(str(page_fact("last_kubernetes_of_al2")).partition(".")[2])
    for group, node in app.each("AWS::EKS::Nodegroup"):
        sizes = [node.get("ScalingConfig", name).integer() for name in ("MinSize", "DesiredSize", "MaxSize")]
        if all(isinstance(each, int) for each in sizes) and sizes != sorted(sizes):
            yield refused(
                f"{group.path}.ScalingConfig",
                f"MinSize {sizes[0]}, DesiredSize {sizes[1]}, MaxSize {sizes[2]}",
                allowed="least, desired and most in this order",
                fix="correct the sizes",
            )
        kind = node.get("AmiType").text()
        cluster = cluster_of(app, node)
        version = node.get("Version").text() or (
            app.node(cluster).get("Version").text() if cluster is not None else None
        )
        if (
            isinstance(kind, str)
            and kind.startswith("AL2_")
            and isinstance(version, str)
            and re.fullmatch(r"1\.\d+", version)
        ) and int(version.partition(".")[2]) > last:
            yield refused(
                f"{group.path}.AmiType",
                f"{kind} with Kubernetes {version}",
                allowed=f"Amazon Linux 2 up to 1.{last}",
                fix=f"write AL2023_{kind.removeprefix('AL2_').replace('_GPU', '')}_STANDARD",
            )
        for each in node.get("InstanceTypes").items() or ():
            if isinstance(each.value, str) and each.value.startswith("ml."):
                yield refused(
                    each.path,
                    f"{each.value}, a type of SageMaker",
                    allowed="types of EC2 in a node group of EKS",
                    fix=f"write {each.value.removeprefix('ml.')}, or make it an instance group of HyperPod",
                )
                continue
            if isinstance(each.value, str) and isinstance(kind, str):
                arm = bool(re.match(r"^[a-z]+\d+g[a-z]*\.", each.value))
                if arm != ("ARM" in kind) and kind != "CUSTOM":
                    yield refused(
                        each.path,
                        f"{each.value} with {kind}",
                        allowed="instance types of the AMI's processor",
                        fix="take an AMI type for ARM" if arm else "take an AMI type for x86",
                    )


@rule(
    "HF345",
    title="Add-ons have nodes to start on",
    each=Eks,
    source="SageMaker developer guide, 'Installing the training operator': runs on nodes with the label of HyperPod",
)
def nodes_for_addons(eks: Eks, deployment: Deployment) -> Iterator[Broken]:
    """
    The operator, its dependencies and the observability add-on run on the cluster's own nodes. With no node at first
    they wait, and the deployment that waits for them rolls back.
    """
    plane = eks.control_plane
    if plane is None or plane.node_roles:
        return
    groups = deployment.cluster.instance_groups
    expected = [addon.name for addon in plane.addons if "hyperpod" in addon.name]
    if expected and groups and sum(group.instance_count for group in groups) == 0:
        yield refused(
            groups[0].at("instance_count"),
            f"no node at first, beside {', '.join(expected)}",
            allowed="at least one node for add-ons",
            fix="begin with a small group of one or two nodes, such as ml.m5.2xlarge",
        )


@rule(
    "HF350",
    title="Nodes for add-ons can hold all their pods",
    each=Eks,
    source="SageMaker developer guide, EKS prerequisites: maximum number of pods per instance type",
)
def room_for_pods(eks: Eks, deployment: Deployment) -> Iterator[Broken]:
    """
    A node takes as many pods as its network interfaces have addresses: five on ml.t3.medium, of which the system's own
    take most. Operators and their dependencies need a dozen and more.
    """
    plane = eks.control_plane
    if plane is None:
        return
    expected = [addon.name for addon in plane.addons if "hyperpod" in addon.name or addon.name == "cert-manager"]
    small = page_fact("pods_per_node")
    groups = [group for group in deployment.cluster.instance_groups if group.instance_count]
    for group in groups:
        pods = [small[name] for name in group.types if name in small]
        if expected and pods and min(pods) < PODS_OF_ADDONS and not _has_better(group, groups, small):
            yield refused(
                group.at("instance_type"),
                f"{', '.join(group.types)} with room for {min(pods)} pods, beside {', '.join(expected)}",
                allowed="nodes for at least a dozen pods",
                fix="take ml.m5.xlarge or larger",
            )


def _has_better(group: InstanceGroup, groups: Sequence[InstanceGroup], small: Mapping[str, int]) -> bool:
    return any(
        each is not group
        and any(not known.accelerators and known.name not in small for known in known_types(each.types))
        for each in groups
    )


def _blocks(app: App, vpc: Resource) -> list[ipaddress.IPv4Network]:
    texts = [app.node(vpc).get("CidrBlock").value]
    texts += [
        app.node(each).get("CidrBlock").value
        for each in app.values.linked(["AWS::EC2::VPCCidrBlock"], ["VpcId"], vpc).found
    ]
    return [found for text in texts if (found := network_of(text)) is not None]

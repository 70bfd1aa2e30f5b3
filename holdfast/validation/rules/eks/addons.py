"""3xx: what has to run in a Kubernetes cluster beside jobs: add-ons and charts."""

import re
from collections.abc import Iterator

from holdfast.catalog import eks_addons, health_monitoring_agent_regions, instance_types, limits
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Addon, Deployment, Eks, EksControlPlane, Group, InstanceGroup, groups_of
from holdfast.validation.rules.eks.control_plane import EKS
from holdfast.validation.rules.eks.training_operator import identities_of_operator

OPERATOR = "amazon-sagemaker-hyperpod-training-operator"
CALLERS = (
    OPERATOR,
    "amazon-cloudwatch-observability",
    "amazon-sagemaker-hyperpod-observability",
    "aws-ebs-csi-driver",
    "aws-efs-csi-driver",
    "aws-fsx-csi-driver",
    "aws-mountpoint-s3-csi-driver",
    "aws-network-flow-monitoring-agent",
    "amazon-sagemaker-hyperpod-inference",
)
"""Those that call AWS with rights that a node's role has not (EKS user guide, 'AWS add-ons', IAM permissions)."""
DAEMON_SETS = frozenset({"vpc-cni", "kube-proxy", "eks-pod-identity-agent"})
ROOM_FOR_ADDONS_VCPUS = 8
AGENT = re.compile(r"hyperpod|health-monitoring", re.IGNORECASE)


@rule(
    "HF303",
    title="EKS add-ons have the versions that HyperPod needs, or newer",
    each=Addon,
    source=f"{EKS}; holdfast/catalog/kubernetes.json",
)
def addon_versions(addon: Addon, _: Deployment) -> Iterator[Broken]:
    """
    VPC CNI from 1.18.3 (HyperPod), CloudWatch observability from 3.1.0 (pod identity), task governance from 1.3.0
    (beside the training operator).
    """
    known = eks_addons().get(addon.name)
    least = known.minimum_version if known is not None else None
    if least is not None and addon.version is not None and _version(addon.version) < _version(least):
        yield refused(addon.at("version"), show(addon.version), allowed=f"{least} or newer", fix="take a newer version")


@rule(
    "HF304",
    title="The VPC CNI add-on is installed",
    each=EksControlPlane,
    source=f"{EKS}: the only supported CNI",
    suppressible=True,
)
def vpc_cni(plane: EksControlPlane, _: Deployment) -> Iterator[Broken]:
    """It has to be there before nodes are. EKS installs it by itself unless BootstrapSelfManagedAddons is false."""
    if not plane.bootstraps_addons and not any(addon.name == "vpc-cni" for addon in plane.addons):
        yield refused(
            plane.at("addons"), "no add-on vpc-cni", allowed="vpc-cni in 1.18.3 or newer", fix="add the add-on vpc-cni"
        )


@rule(
    "HF305",
    title="HyperPod's Helm charts are installed before the cluster",
    each=Eks,
    source="SageMaker developer guide, 'Installing packages using Helm'; sagemaker-hyperpod-cli 95",
)
def charts_before_cluster(eks: Eks, _: Deployment) -> Iterator[Broken]:
    """
    Without the health monitoring agent no node is found faulty, and CreateCluster looks for its dependencies at once.
    CloudFormation makes the two in any order unless the cluster depends on the release.
    """
    plane = eks.control_plane
    if plane is None:
        return
    agents = [release for release in plane.releases if AGENT.search(release.chart)]
    if not agents:
        yield refused(
            plane.at("releases"),
            "no release of HyperPod's charts",
            allowed="the health monitoring agent at least",
            fix="install HyperPodHelmChart and let the cluster depend on it",
        )
    for release in agents:
        if not release.before_cluster:
            yield refused(
                release.path,
                f"{release.chart}, which the cluster does not wait for",
                allowed="a cluster that depends on the release",
                fix="let the cluster depend on it",
            )


@rule("HF310", severity="warning", title="No storage driver manages the nodes' local NVMe disks", each=Eks, source=EKS)
def local_volumes(eks: Eks, _: Deployment) -> Iterator[Broken]:
    """
    HyperPod's AMI makes a volume group of the local disks and mounts it at /opt/dlami/nvme. A storage driver that takes
    the disks for its own fights with it.
    """
    for release in eks.control_plane.releases if eks.control_plane is not None else ():
        if release.chart in limits("local_volume_charts"):
            yield Broken(
                path=release.path,
                message=f"{release.chart} takes disks that HyperPod's AMI has put into a volume group",
                fix="leave the chart out, and use the AMI's mount",
            )


@rule(
    "HF320",
    title="The training operator's dependencies are installed",
    each=EksControlPlane,
    source="SageMaker developer guide, 'Installing the training operator'",
)
def operator_dependencies(plane: EksControlPlane, _: Deployment) -> Iterator[Broken]:
    """It needs cert-manager and the pod identity agent. Without them the add-on stays degraded."""
    names = {addon.name for addon in plane.addons}
    charts = {release.chart for release in plane.releases}
    missing = [name for name in ("cert-manager", "eks-pod-identity-agent") if name not in names | charts]
    if OPERATOR in names and missing:
        yield refused(
            plane.at("addons"),
            f"no {' and no '.join(missing)}",
            allowed="cert-manager and eks-pod-identity-agent beside the operator",
            fix="add them",
        )


@rule(
    "HF321",
    title="Add-ons that call AWS have a role",
    each=Addon,
    source="EKS user guide, 'IAM roles for Amazon EKS add-ons'; awsome-distributed-ai 1075",
)
def addon_roles(addon: Addon, deployment: Deployment) -> Iterator[Broken]:
    """
    Nodes' roles do not cover them. Version 1.2.1 of the training operator rejects an association inside the add-on:
    make it a resource of its own, before the add-on. HF346 is about one of another name.
    """
    if addon.name == OPERATOR and deployment.app is not None and any(identities_of_operator(deployment.app)):
        return
    if addon.name in CALLERS and not addon.has_role:
        yield refused(
            addon.path,
            f"{addon.name} without a role",
            allowed="one with a pod identity association",
            fix="add a pod identity association for its service account",
        )


@rule(
    "HF322",
    severity="warning",
    title="Some instance group can run the add-ons' pods",
    each=Eks,
    source="ai-on-sagemaker-hyperpod 142: add-ons did not fit the 14 pods of ml.g5.xlarge",
)
def room_for_addons(_: Eks, deployment: Deployment) -> Iterator[Broken]:
    """Add-ons and operators take a dozen pods. How many a node can have grows with its size."""
    known, types = instance_types(), [name for group in groups_of(deployment.cluster) for name in group.types]
    if types and all(name in known and known[name].vcpus < ROOM_FOR_ADDONS_VCPUS for name in types):
        yield Broken(
            path=deployment.cluster.at("instance_groups"),
            message=f"no group has nodes of {ROOM_FOR_ADDONS_VCPUS} vCPUs, and add-ons may not fit",
            fix="add a group like ml.m5.2xlarge for what runs beside training",
        )


@rule(
    "HF355",
    severity="warning",
    title="What is installed on nodes does not wait for scarce capacity",
    each=EksControlPlane,
    source="EKS user guide, 'AWS add-ons'; awslabs/awsome-distributed-ai 95b939c, wait-for-hyperpod-nodes.sh",
    suppressible=True,
)
def node_for_addons(plane: EksControlPlane, deployment: Deployment) -> Iterator[Broken]:
    """
    An add-on whose pods have no node is degraded, which fails its resource and rolls the first deployment back.
    Accelerated types, Spot and training plans can be hours or days away; CPU nodes on demand come within minutes.
    """
    cluster = deployment.cluster
    if not cluster.continuous or all(addon.name in DAEMON_SETS for addon in plane.addons):
        return
    groups = [group for group in groups_of(cluster) if group.instance_count and group.types]
    if groups and not any(_comes_soon(group) for group in groups):
        yield Broken(
            path=cluster.at("instance_groups"),
            message="every node is accelerated, Spot or of a training plan, and without a node add-ons fail",
            fix="add a group like ml.m5.2xlarge, or set eks.install_on_nodes: false until there is a node",
        )


def _comes_soon(group: Group) -> bool:
    known = instance_types()
    scarce = group.training_plan_arn is not None or (isinstance(group, InstanceGroup) and group.capacity == "spot")
    return not scarce and all(name in known and not known[name].accelerators for name in group.types)


@rule(
    "HF323",
    severity="warning",
    title="The health monitoring agent's image is available in the region",
    each=Eks,
    source="sagemaker-hyperpod-cli, health-monitoring-agent chart; sagemaker-hyperpod-cli 359",
)
def agent_region(_: Eks, deployment: Deployment) -> Iterator[Broken]:
    """The chart names an image per region. Elsewhere it takes another region's, which a closed network cannot reach."""
    region = deployment.region
    if region is not None and region not in health_monitoring_agent_regions():
        yield Broken(
            path=deployment.at("region"),
            message=f"the chart of the health monitoring agent names no image in {region}",
            fix="give the chart an image that nodes can pull",
        )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("-")[0]))

"""3xx: labels, taints, Karpenter and priorities in a Kubernetes cluster."""

import re
from collections.abc import Iterator

from holdfast.catalog import bounds, charts, charts_for, known_types, nvidia_device_plugin_mirror
from holdfast.catalog.facts import page_fact
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Cluster, Deployment, EnvironmentFile, InstanceGroup
from holdfast.validation.rules.eks.control_plane import EKS

KARPENTER = "SageMaker developer guide, 'Autoscaling on SageMaker HyperPod EKS'"
LABELS = "Kubernetes documentation, 'Labels and Selectors'"
PREFIX = r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
LABEL_KEY = re.compile(PREFIX + r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
MOST_LABELS, MOST_TAINTS = bounds("labels").most, bounds("taints").most
LONGEST_KEY = bounds("label_key_length").most
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
MIG_LABEL = "nvidia.com/mig.config"
RESERVED = ("kubernetes.io", "k8s.io", "sagemaker.amazonaws.com", "eks.amazonaws.com")


@rule("HF309", title="Groups with deep health checks have no taints", each=InstanceGroup, source=EKS)
def taints_and_deep_checks(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """The checks run as pods that do not tolerate taints of your own, so the nodes would never pass."""
    if group.deep_health_checks and group.taints:
        yield refused(
            group.at("taints"),
            "taints on a group with deep health checks",
            allowed="one of the two",
            fix="remove the taints, or the checks",
        )


@rule(
    "HF352",
    title="A group takes the pods of add-ons",
    each=Cluster,
    source="EKS user guide, 'Add the CoreDNS Amazon EKS add-on'; Kubernetes documentation, 'Taints and Tolerations'",
    suppressible=True,
)
def room_for_addons(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """
    CoreDNS and operators tolerate no taints of yours. Where each group has one that keeps pods away, they wait, and
    their add-ons fail. An existing EKS cluster, and one with node groups, may have other nodes for them.
    """
    groups, eks = cluster.instance_groups, cluster.eks
    if eks is None or not groups:
        return
    tainted = all(any(taint.effect != "PreferNoSchedule" for taint in group.taints) for group in groups)
    if tainted and eks.control_plane is not None and not eks.control_plane.node_roles:
        yield refused(
            groups[0].at("taints"),
            "taints on each group",
            allowed="a group without taints, for pods of add-ons",
            fix=f"remove the taints of {groups[0].name}, or add a small group without",
        )


@rule(
    "HF354",
    title="GPUs are partitioned in groups of one type, by its profiles",
    each=InstanceGroup,
    source="SageMaker developer guide, 'Using GPU partitions in Amazon SageMaker HyperPod'",
)
def partitions(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """
    "GPU partitioning with MIG is not supported with flexible instance groups." The label nvidia.com/mig.config names a
    profile of the GPU: all-1g.5gb is for an A100, all-1g.10gb for an H100.
    """
    config = group.labels.get(MIG_LABEL)
    if config is None:
        return
    if group.instance_types:
        yield refused(
            group.at("labels"),
            f"{MIG_LABEL} on a group of several types",
            allowed="it on a group of one type",
            fix="remove the label, or give one type",
        )
        return
    profiles = page_fact("gpu_partitions").get(group.instance_type)
    if profiles and config.startswith("all-") and config not in ("all-disabled", "all-enabled", "all-balanced"):
        profile = config.removeprefix("all-")
        if profile not in profiles:
            yield refused(
                group.at("labels"),
                f"{MIG_LABEL} {config} on {group.instance_type}",
                allowed=", ".join(f"all-{each}" for each in profiles),
                fix=f"write all-{profiles[0]}",
            )


@rule(
    "HF311",
    title=f"A group has at most {MOST_LABELS} labels and {MOST_TAINTS} taints",
    each=InstanceGroup,
    source="SageMaker API reference, ClusterKubernetesConfig",
)
def number_of_labels(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """CreateCluster refuses more."""
    for attribute, count, most in (
        ("labels", len(group.labels), MOST_LABELS),
        ("taints", len(group.taints), MOST_TAINTS),
    ):
        if count > most:
            yield refused(group.at(attribute), f"{count} {attribute}", allowed=f"at most {most}", fix="remove some")


@rule("HF312", title="Labels have Kubernetes' syntax", each=InstanceGroup, source=LABELS)
def label_syntax(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """A key is a name of at most 63 characters, after an optional DNS prefix and a slash; a value has at most 63."""
    for key, value in group.labels.items():
        yield from _syntax(group.at("labels"), key, value)


@rule("HF313", title="Taints have Kubernetes' syntax and stand once", each=InstanceGroup, source=LABELS)
def taint_syntax(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """Keys and values are those of labels, the effect is one of three, and a key has each effect once."""
    seen = set()
    for taint in group.taints:
        yield from _syntax(taint.at("key"), taint.key, taint.value or "")
        if taint.effect not in EFFECTS:
            yield refused(
                taint.at("effect"), show(taint.effect), allowed=f"one of {', '.join(EFFECTS)}", fix="write NoSchedule"
            )
        if (taint.key, taint.effect) in seen:
            yield refused(
                taint.path, f"{taint.key}:{taint.effect} again", allowed="each key and effect once", fix="remove it"
            )
        seen.add((taint.key, taint.effect))


@rule(
    "HF314",
    severity="warning",
    title="Labels and taints do not use reserved prefixes",
    each=InstanceGroup,
    source="Kubernetes documentation, 'Well-Known Labels, Annotations and Taints'",
)
def reserved_prefixes(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """
    Kubernetes, EKS and HyperPod write labels of their own, such as node.kubernetes.io/instance-type and
    sagemaker.amazonaws.com/node-health-status. A label that claims to be one of them misleads schedulers and recovery.
    """
    keys = [(group.at("labels"), key) for key in group.labels] + [
        (taint.at("key"), taint.key) for taint in group.taints
    ]
    for path, key in keys:
        prefix = key.rpartition("/")[0]
        if any(prefix == reserved or prefix.endswith(f".{reserved}") for reserved in RESERVED):
            yield Broken(path=path, message=f"{key} has a prefix that others write", fix="take a prefix of your own")


@rule("HF315", title="Karpenter has the settings that it needs", each=Cluster, source=KARPENTER)
def karpenter(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """The managed Karpenter works on EKS, with continuous provisioning and automatic node recovery."""
    if cluster.auto_scaler is None:
        return
    if cluster.auto_scaler != "Karpenter":
        yield refused(cluster.at("auto_scaler"), show(cluster.auto_scaler), allowed="Karpenter", fix="write Karpenter")
    for wrong, given, fix in (
        (cluster.eks is None, "Karpenter under Slurm", "remove it, or take EKS"),
        (
            not cluster.continuous,
            "Karpenter without continuous provisioning",
            "set node provisioning mode to Continuous",
        ),
        (cluster.node_recovery == "None", "Karpenter without node recovery", "set node recovery to Automatic"),
    ):
        if wrong:
            yield refused(
                cluster.at("auto_scaler"),
                given,
                allowed="Karpenter on EKS, with node provisioning mode Continuous and node recovery Automatic",
                fix=fix,
            )


@rule(
    "HF316",
    title="Karpenter has a role that may add and remove nodes",
    each=Cluster,
    source=f"{KARPENTER}; API ClusterRole",
)
def karpenter_role(cluster: Cluster, deployment: Deployment) -> Iterator[Broken]:
    """
    ClusterRole trusts hyperpod.sagemaker.amazonaws.com and allows BatchAddClusterNodes and BatchDeleteClusterNodes.
    Holdfast's construct makes it.
    """
    if cluster.auto_scaler is None or deployment.file is not None:
        return
    if not cluster.has_role:
        yield refused(cluster.at("role"), "no ClusterRole", allowed="one with Karpenter", fix="add ClusterRole")
    role = cluster.role
    if role is None:
        return
    if "hyperpod.sagemaker.amazonaws.com" not in role.trusted_services:
        yield refused(
            role.at("trusted_services"),
            "a ClusterRole that HyperPod cannot assume",
            allowed="trust in hyperpod.sagemaker.amazonaws.com",
            fix="add it to the trust policy",
        )
    for action in ("sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes"):
        if not role.allows(action, kind="cluster"):
            yield refused(
                role.at("statements"),
                f"no {action} on clusters",
                allowed="this action on the ClusterRole",
                fix=f"allow {action} on arn:aws:sagemaker:*:*:cluster/*",
            )


@rule(
    "HF326",
    title="A closed network has the Helm charts as files",
    each=EnvironmentFile,
    source="Holdfast",
)
def charts_of_a_closed_network(file: EnvironmentFile, deployment: Deployment) -> Iterator[Broken]:
    """
    Helm charts are installed before the first node, and come from GitHub unless their archives are given: the function
    that installs them runs in the nodes' subnet. A folder that is given has archives, and in a closed network those of
    all charts that the instance types need.
    """
    if "eks" not in file.orchestrators:
        return
    closed = file.egress == "none" and not file.existing_network
    if not file.chart_archives:
        if closed:
            yield refused(
                file.at("chart_archives"),
                "no archives, and egress none",
                allowed="a folder with the archives of the charts",
                fix="add eks.chart_archives, a folder with an OWNER+REPOSITORY.tar.gz per chart, or write egress: nat",
            )
        return
    groups = deployment.cluster.instance_groups
    needed = charts_for(known_types(name for group in groups for name in group.types))
    missing = [each for each in needed if each not in file.charts_in_archives]
    if missing and (closed or not file.charts_in_archives):
        repository = charts()[missing[0]].repository
        archive = f"{repository.replace('/', '+')}.tar.gz"
        yield refused(
            file.at("chart_archives"),
            f"{show(file.chart_archives)} without the charts {', '.join(missing)}",
            allowed="a folder beside this file with an OWNER+REPOSITORY.tar.gz of GitHub per repository of charts",
            fix=f"put {archive} into it, that of commit {charts()[missing[0]].commit}",
        )


@rule(
    "HF340",
    title="A closed network can pull the images of device plugins",
    each=EnvironmentFile,
    source="aws/sagemaker-hyperpod-cli 011ca92, neuron-device-plugin and gpu-operator/regional-values; Amazon ECR user "
    "guide, 'Sync an upstream registry': none for nvcr.io",
)
def images_of_a_closed_network(file: EnvironmentFile, deployment: Deployment) -> Iterator[Broken]:
    """
    Without a way out, images come from ECR. AWS has a copy of NVIDIA's device plugin in most regions; the chart of the
    Neuron device plugin names public.ecr.aws and lets nobody change it.
    """
    if "eks" not in file.orchestrators or file.egress != "none":
        return
    for group in deployment.cluster.instance_groups:
        facts = [each for each in known_types(group.types) if each.accelerators]
        neuron = sorted({each.name for each in facts if each.has_neuron})
        if neuron:
            yield refused(
                group.at("instance_type"),
                f"{', '.join(neuron)} in a network without a way out",
                allowed="GPU types, because the Neuron device plugin comes from public.ecr.aws",
                fix="write egress: nat, or choose a type with GPUs",
            )
        elif facts and deployment.region and nvidia_device_plugin_mirror(deployment.region) is None:
            yield refused(
                group.at("instance_type"),
                f"GPUs in a network without a way out, in {deployment.region}",
                allowed="regions where AWS has a copy of NVIDIA's device plugin, which comes from nvcr.io",
                fix="write egress: nat",
            )


@rule(
    "HF325",
    title="Labels and taints are set on EKS clusters only",
    each=InstanceGroup,
    source="SageMaker API reference, KubernetesConfig",
)
def kubernetes_settings(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """CreateCluster refuses KubernetesConfig without the EKS orchestrator."""
    if deployment.cluster.eks is None and (group.labels or group.taints):
        given = "labels" if group.labels else "taints"
        yield refused(group.at(given), f"{given} under Slurm", allowed=f"{given} on EKS", fix=f"remove the {given}")


def _syntax(path: str, key: str, value: str) -> Iterator[Broken]:
    if len(key) > LONGEST_KEY or not LABEL_KEY.fullmatch(key):
        yield refused(path, f"the key {show(key)}", allowed="[prefix/]name of letters, digits, - _ .", fix="rename it")
    if not LABEL_VALUE.fullmatch(value):
        yield refused(path, f"the value {show(value)}", allowed="at most 63 letters, digits, - _ .", fix="change it")

"""EKS control plane of an environment file, and what is installed on it."""

from collections.abc import Iterator
from typing import Any

from holdfast.catalog import EKS_CLUSTER
from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.from_environment.settings import Settings
from holdfast.validation.model import Addon, Eks, HelmRelease, VpcConfig
from holdfast.validation.translation import eks_cluster


def addons_on_nodes(file: Settings) -> Iterator[str]:
    eks = file.eks
    if eks.install_on_nodes is False:
        return
    if file.observability.container_insights is True:
        yield "amazon-cloudwatch-observability"
    if file.storage.lustre is not None:
        yield "aws-fsx-csi-driver"
    if eks.training_operator is True:
        yield from ("cert-manager", "amazon-sagemaker-hyperpod-training-operator")
    if eks.task_governance is not None:
        yield "amazon-sagemaker-hyperpod-taskgovernance"
    if eks.observability_addon is True:
        yield "amazon-sagemaker-hyperpod-observability"


def control_plane_of(file: Settings, *, name: str) -> dict[str, Any]:
    """A new EKS cluster, as a resource."""
    eks = file.eks
    if eks is None or eks.existing is not None:
        return {}
    properties = eks_cluster(
        eks,
        places=eks.places(version="kubernetes_version"),
        name=name,
        version=eks.kubernetes_version if eks.is_set("kubernetes_version") else UNRESOLVED,
        public_access_cidrs=eks.public_access_cidrs,
    )
    return {"Eks": {"Type": EKS_CLUSTER, "Properties": properties}}


def eks_of(file: Settings, read: Eks | None, *, vpc: VpcConfig) -> Eks | None:
    """EKS as it was read from its properties, with what is installed."""
    if read is None or file.eks.existing is not None:
        return None if read is None else Eks(path="eks")  # its owner's; the account tells whether HyperPod takes it
    assert read.control_plane is not None
    coredns = () if file.eks.install_on_nodes is False else ("coredns",)
    names = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent", *coredns, *addons_on_nodes(file))
    plane = read.control_plane.changed(
        vpc=vpc,
        addons=tuple(Addon(path="eks", name=name, version=None) for name in names),
        releases=(HelmRelease(path="eks", chart="HyperPodHelmChart", before_cluster=True),),
    )
    return read.changed(control_plane=plane)

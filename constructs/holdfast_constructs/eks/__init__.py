"""EKS control plane, owned or existing: access, add-ons, Helm charts, wait for nodes."""

from holdfast_constructs.eks.addon import EksAddon, PodIdentity
from holdfast_constructs.eks.base import EksBase, IHyperPodEks
from holdfast_constructs.eks.chart_folder import ChartFolder
from holdfast_constructs.eks.charts import chart_values
from holdfast_constructs.eks.control_plane import HyperPodEks
from holdfast_constructs.eks.helm import HelmInstaller, HelmRelease
from holdfast_constructs.eks.nodes import NodesReady

__all__ = [
    "ChartFolder",
    "EksAddon",
    "EksBase",
    "HelmInstaller",
    "HelmRelease",
    "HyperPodEks",
    "IHyperPodEks",
    "NodesReady",
    "PodIdentity",
    "chart_values",
]

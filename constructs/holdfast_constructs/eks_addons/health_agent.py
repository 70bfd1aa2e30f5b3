"""Holdfast's health agent on a cluster on EKS: a pod on each node, which marks its node and has no rights in AWS."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from constructs import Construct

from holdfast_constructs.eks import ChartFolder, HelmRelease, IHyperPodEks

NAME = "holdfast-health-agent"
NAMESPACE = "holdfast-system"


class HealthAgent(Construct):
    """
    The health agent as a DaemonSet.

    It asks HyperPod for a reboot or a replacement by the label of its node, so it needs no credentials of AWS.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster: IHyperPodEks,
        chart: Path,
        image: str,
        cluster_name: str,
        mode: Literal["observe", "act"] = "observe",
        breaker_share: float = 0.1,
        own_node_only: bool = True,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """
        Define the agent of a cluster.

        Args:
            eks_cluster: Where it is installed.
            chart: The folder of its chart: ``containers/health-agent/chart`` of Holdfast.
            image: The agent's image. Nodes must be allowed to pull it.
            cluster_name: Of the HyperPod cluster; its events have the name.
            mode: act: it also asks HyperPod to reboot or replace its node. Default: "observe".
            breaker_share: The part of the nodes that all agents together may have taken within an hour, at least one.
                Default: 0.1.
            own_node_only: Whether Kubernetes keeps the token of a pod from changing other nodes, which takes 1.31 or
                later. Default: True.
            settings: Further settings of the agent by their dotted names. Default: its own.
        """
        super().__init__(scope, construct_id)
        values = {
            "image": image,
            "clusterName": cluster_name,
            "mode": mode,
            "breakerShare": breaker_share,
            "ownNodeOnly": own_node_only,
            "settings": dict(settings or {}),
        }
        self.release = HelmRelease(
            self,
            "Release",
            installer=eks_cluster.installer,
            chart=ChartFolder(name=NAME, folder=chart),
            namespace=NAMESPACE,
            values=values,
            wait=False,
        )

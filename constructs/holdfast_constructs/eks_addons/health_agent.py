from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from constructs import Construct

from holdfast_constructs.eks import ChartFolder, HelmRelease, IHyperPodEks

NAME = "holdfast-health-agent"
NAMESPACE = "holdfast-system"


class HealthAgent(Construct):
    """
    Health agent as a DaemonSet; requests reboots and replacements by the label of its node, without AWS credentials.
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
            chart: Folder of its chart: ``containers/health-agent/chart`` of Holdfast.
            image: Nodes must be allowed to pull it.
            cluster_name: Of the HyperPod cluster, for events.
            mode: act: request reboots and replacements. Default: "observe".
            breaker_share: Share of the nodes taken within an hour by all agents, at least one node. Default: 0.1.
            own_node_only: Restrict a pod's token to its own node, with Kubernetes 1.31 or later. Default: True.
            settings: More settings of the agent by dotted names.
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

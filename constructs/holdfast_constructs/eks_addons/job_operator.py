from collections.abc import Mapping
from pathlib import Path

from constructs import Construct

from holdfast_constructs.eks import ChartFolder, HelmRelease, IHyperPodEks
from holdfast_constructs.eks_addons.health_agent import NAMESPACE

NAME = "holdfast-operator"


class JobOperator(Construct):
    """Operator of HoldfastJobs, without AWS credentials: two pods, of which one acts, and the kind HoldfastJob."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster: IHyperPodEks,
        chart: Path,
        image: str,
        admission: bool = True,
        hyperpod_pytorch_jobs: bool = False,
        node_selector: Mapping[str, str] | None = None,
    ) -> None:
        """
        Define the operator of a cluster.

        Args:
            chart: Folder of its chart: ``containers/operator/chart`` of Holdfast.
            image: Nodes must be allowed to pull it.
            admission: Refuse invalid jobs when they are created. Default: True.
            hyperpod_pytorch_jobs: Run HyperPodPyTorchJobs too, in place of AWS's training operator. Default: False.
            node_selector: Labels of the operator's nodes. Default: those of HyperPod.
        """
        super().__init__(scope, construct_id)
        values: dict[str, object] = {"image": image, "admission": {"enabled": admission}}
        if hyperpod_pytorch_jobs:
            values["hyperPodPyTorchJobs"] = {"enabled": True}
        if node_selector is not None:
            values["nodeSelector"] = dict(node_selector)
        self.release = HelmRelease(
            self,
            "Release",
            installer=eks_cluster.installer,
            chart=ChartFolder(name=NAME, folder=chart),
            namespace=NAMESPACE,
            values=values,
            wait=False,
        )

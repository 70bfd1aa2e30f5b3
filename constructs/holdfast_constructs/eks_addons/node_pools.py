"""Node pools of HyperPod's Karpenter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from aws_cdk import Duration
from constructs import Construct

from holdfast.catalog import bounds
from holdfast_constructs.cluster import HyperPodCluster
from holdfast_constructs.eks import ChartFolder, HelmRelease, IHyperPodEks
from holdfast_constructs.groups import Taint

NAME = "holdfast-node-pools"
NODE_POOLS_CHART = Path(__file__).with_name("node_pools_chart")
NODE_CLASS_GROUP = "karpenter.sagemaker.amazonaws.com"
MOST_GROUPS = bounds("node_class_groups").most


@dataclass(frozen=True, kw_only=True)
class NodePool:
    """Instance groups whose nodes Karpenter adds for pending pods and removes."""

    name: str
    """Of the NodePool and its HyperpodNodeClass, and the nodes' label ``karpenter.sh/nodepool``."""
    instance_groups: Sequence[str]
    """Names of groups with 0 nodes, at most 10."""
    taints: Sequence[Taint] = ()
    """Those of the groups, by which Karpenter judges pods. Default: none."""
    limits: Mapping[str, str] | None = None
    """Quantities of all nodes together by resource: ``{"cpu": "768", "nvidia.com/gpu": "32"}``. Default: none."""
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized"] = "WhenEmpty"
    """Default: WhenEmpty, a node with a pod stays."""
    consolidate_after: Duration | None = None
    """Time without a change of its pods before a node is removed. Default: 5 minutes."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.instance_groups) <= MOST_GROUPS:
            raise ValueError(
                f"node pool '{self.name}': got {len(self.instance_groups)} instance groups; allowed: 1 to {MOST_GROUPS}"
            )


class NodePools(Construct):
    """
    Node pools of a cluster with ``AutoScaling``, as one Helm release, which waits for the kinds that HyperPod installs.

    Nodes never expire, because a node of training is removed when it has no pods.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks_cluster: IHyperPodEks,
        cluster: HyperPodCluster,
        pools: Sequence[NodePool],
    ) -> None:
        """Define node pools. Deleting them removes their nodes."""
        super().__init__(scope, construct_id)
        self.release = HelmRelease(
            self,
            "Release",
            installer=eks_cluster.installer,
            chart=ChartFolder(name=NAME, folder=NODE_POOLS_CHART),
            values={"objects": [made for pool in pools for made in (_node_class(pool), _node_pool(pool))]},
            wait=False,
            await_kinds=True,
            after=[cluster.resource],
        )


def _node_class(pool: NodePool) -> dict[str, Any]:
    """SageMaker developer guide, "Create a NodeClass"."""
    return {
        "apiVersion": f"{NODE_CLASS_GROUP}/v1",
        "kind": "HyperpodNodeClass",
        "metadata": {"name": pool.name},
        "spec": {"instanceGroups": list(pool.instance_groups)},
    }


def _node_pool(pool: NodePool) -> dict[str, Any]:
    """SageMaker developer guide, "Create a NodePool"; Karpenter documentation, "NodePools"."""
    empty_s = 300 if pool.consolidate_after is None else pool.consolidate_after.to_seconds()
    spec: dict[str, Any] = {
        "nodeClassRef": {"group": NODE_CLASS_GROUP, "kind": "HyperpodNodeClass", "name": pool.name},
        "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "Exists"}],
        "expireAfter": "Never",
    }
    if pool.taints:
        spec["taints"] = [
            {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
            for taint in pool.taints
        ]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": pool.name},
        "spec": {
            "template": {"spec": spec},
            "disruption": {
                "consolidationPolicy": pool.consolidation_policy,
                "consolidateAfter": f"{empty_s:.0f}s",
            },
            **({"limits": dict(pool.limits)} if pool.limits else {}),
        },
    }

"""Node pools of Karpenter as an environment asks for them."""

from aws_cdk import Duration
from constructs import Construct

from holdfast import config
from holdfast_constructs import HyperPodCluster, IHyperPodEks, NodePool, NodePools, Taint


def node_pools(
    scope: Construct, environment: config.Environment, *, control_plane: IHyperPodEks, cluster: HyperPodCluster
) -> None:
    """Define node pools; none in a rehearsal, whose Kubernetes has no Karpenter."""
    pools = () if environment.eks is None else environment.eks.node_pools
    if pools and environment.cloud == "aws":
        NodePools(
            scope,
            "NodePools",
            eks_cluster=control_plane,
            cluster=cluster,
            pools=[_node_pool(pool, environment) for pool in pools],
        )


def _node_pool(pool: config.NodePool, environment: config.Environment) -> NodePool:
    groups = (group for group in environment.cluster.instance_groups if group.name in pool.instance_groups)
    taints = next((group.taints for group in groups), ())
    return NodePool(
        name=pool.name,
        instance_groups=pool.instance_groups,
        taints=[Taint(key=taint.key, value=taint.value or None, effect=taint.effect) for taint in taints],
        limits=_limits(pool.limits),
        consolidation_policy=pool.consolidation_policy,
        consolidate_after=Duration.seconds(pool.consolidate_after_s),
    )


def _limits(limits: config.NodePoolLimits | None) -> dict[str, str]:
    """Quantities of Kubernetes, as text: Helm writes large numbers with an exponent."""
    if limits is None:
        return {}
    found = {
        "cpu": limits.vcpus,
        "memory": None if limits.memory_gib is None else f"{limits.memory_gib}Gi",
        "nvidia.com/gpu": limits.gpus,
    }
    return {resource: str(total) for resource, total in found.items() if total is not None}

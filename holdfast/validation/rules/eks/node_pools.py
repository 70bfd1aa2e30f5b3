"""3xx: node pools, by which Karpenter adds and removes nodes."""

from collections.abc import Iterator

from holdfast.catalog import InstanceType, known_types
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Deployment, EnvironmentFile, InstanceGroup, NodePool
from holdfast.validation.rules.eks.scheduling import KARPENTER
from holdfast_common import closest_word

NODE_CLASS = "SageMaker developer guide, 'Create a NodeClass'"
NODE_POOL = "SageMaker developer guide, 'Create a NodePool'"


@rule("HF360", title="Karpenter can fill the groups of a node pool", each=NodePool, source=f"{NODE_CLASS}; {NODE_POOL}")
def groups_of_pools(pool: NodePool, deployment: Deployment) -> Iterator[Broken]:
    """
    A node pool names instance groups of the cluster. They begin with 0 nodes: Karpenter removes those that it has not
    added. AWS supports on-demand capacity of amd64 alone, without training plans, and without deep health checks, for
    whose hours pods would stay pending.

    The pool's nodes have the taints of their group. Karpenter judges a pod by those of the pool, so all groups of a
    pool have the same.
    """
    groups = {group.name: group for group in deployment.cluster.instance_groups}
    place = pool.at("instance_groups")
    for index, name in enumerate(pool.instance_groups):
        if name in pool.instance_groups[:index]:
            yield refused(place, f"{show(name)} again", allowed="each group once", fix="remove it")
        elif name not in groups:
            yield refused(
                place,
                f"the group {show(name)}",
                allowed=f"instance groups of the cluster: {', '.join(groups)}",
                fix=f"write {closest_word(name, groups) or next(iter(groups), 'a group')}",
            )
        else:
            yield from _unfit(groups[name])
    known = [groups[name] for name in pool.instance_groups if name in groups]
    for group in known[1:]:
        if _taints(group) != _taints(known[0]):
            yield refused(
                group.at("taints"),
                f"other taints than those of {known[0].name} in the node pool {pool.name}",
                allowed="the same taints in all groups of a pool",
                fix=f"write the taints of {known[0].name}, or give {group.name} a pool of its own",
            )


@rule(
    "HF361",
    title="Node pools have names of their own, Karpenter, and room for a node",
    each=NodePool,
    source=f"{KARPENTER}; Karpenter documentation, 'NodePools', spec.limits",
)
def node_pools(pool: NodePool, deployment: Deployment) -> Iterator[Broken]:
    """
    HyperPod installs the kinds NodePool and HyperpodNodeClass where Karpenter is on; without it a release of node pools
    fails. A limit below the smallest node of its groups lets no node come.
    """
    cluster = deployment.cluster
    if cluster.auto_scaler is None:
        yield refused(
            pool.path,
            "a node pool without Karpenter",
            allowed="node pools with the auto scaler Karpenter",
            fix="turn the auto scaler on, or remove the node pools",
        )
    first = next(each for each in deployment.node_pools if each.name == pool.name)
    if first is not pool:
        yield refused(pool.at("name"), f"{show(pool.name)} again", allowed="each name once", fix="rename it")
    types = _types(pool, deployment)
    for name, limit, sizes in (
        ("vcpus", pool.vcpus, [each.vcpus for each in types]),
        ("memory_gib", pool.memory_gib, [each.memory_gib for each in types]),
        ("gpus", pool.gpus, [0 if each.has_neuron else each.accelerators for each in types]),
    ):
        least = min(sizes, default=0)
        if limit is not None and limit < least:
            yield refused(
                pool.at(name),
                f"a limit of {limit}, below the {least} of the smallest node",
                allowed=f"{least} or more",
                fix=f"write {least} times the number of nodes, or remove the limit",
            )


@rule(
    "HF362",
    severity="warning",
    title="Karpenter has a node pool",
    each=EnvironmentFile,
    source=f"{KARPENTER}; Karpenter documentation: 'Karpenter won't do anything if there is not at least one NodePool'",
)
def karpenter_has_pools(_: EnvironmentFile, deployment: Deployment) -> Iterator[Broken]:
    """
    Karpenter adds nodes for a NodePool and its HyperpodNodeClass alone. Suppress this where you apply your own. An
    existing EKS cluster may have those of its owner.
    """
    cluster = deployment.cluster
    made_here = cluster.eks is not None and cluster.eks.control_plane is not None
    if made_here and cluster.auto_scaler is not None and not deployment.node_pools:
        yield Broken(
            path=cluster.at("auto_scaler"),
            message="Karpenter without node pools adds no node",
            fix="add eks.node_pools with instance groups of instance_count 0",
        )


def _unfit(group: InstanceGroup) -> Iterator[Broken]:
    arm = [each.name for each in known_types(group.types) if each.is_arm]
    for attribute, wrong, given, fix in (
        (
            "instance_count",
            group.instance_count > 0,
            f"{group.instance_count} nodes in a group of a node pool",
            "write 0, without spares",
        ),
        ("capacity", group.capacity == "spot", "spot capacity in a node pool", "remove it"),
        ("training_plan_arn", group.training_plan_arn is not None, "a training plan in a node pool", "remove it"),
        ("deep_health_checks", bool(group.deep_health_checks), "deep health checks in a node pool", "remove them"),
        (
            "instance_types" if group.instance_types else "instance_type",
            bool(arm),
            f"{', '.join(arm)} in a node pool",
            "take a type of amd64",
        ),
    ):
        if wrong:
            yield refused(
                group.at(attribute),
                given,
                allowed="a group of 0 nodes with on-demand capacity of amd64, without deep health checks",
                fix=f"{fix}, or take {group.name} out of the pool",
            )


def _taints(group: InstanceGroup) -> set[tuple[str, str, str]]:
    return {(taint.key, taint.value or "", taint.effect) for taint in group.taints}


def _types(pool: NodePool, deployment: Deployment) -> list[InstanceType]:
    groups = [group for group in deployment.cluster.instance_groups if group.name in pool.instance_groups]
    return known_types(name for group in groups for name in group.types)

"""73x: how much the health agent may do, and where. What it runs of its owner's is judged as other scripts are."""

from collections.abc import Iterator

from holdfast.validation.engine import Broken, declare, rule
from holdfast.validation.model import Deployment, EnvironmentFile

MOST_SHARE = 0.5
"""Above it more nodes may be taken within an hour than are left."""

declare(
    "HF730",
    title="The breaker's share is above 0 and at most 1",
    source="Holdfast",
    explanation="""
    `health.breaker_share` is the part of a cluster's nodes that agents may have rebooted or replaced within an hour;
    one node is always allowed. 0.1 is one node in ten. With 0 nothing would be repaired: use mode observe for that.
    """,
)
declare(
    "HF731",
    title="The burn-in takes 0 to 1800 seconds",
    source="Holdfast",
    explanation="""
    `health.burn_in_seconds` is spent on every new compute node before it joins, and replacements wait for it as well.
    0 leaves it out. Deep health checks of HyperPod (`deep_health_checks`) are for what takes longer.
    """,
)


@rule(
    "HF732",
    severity="warning",
    title="The breaker keeps half of the nodes",
    each=EnvironmentFile,
    source="Holdfast",
)
def breaker_holds_back(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """
    When a driver, a switch or a policy is wrong, all nodes look faulty at once. The breaker is what keeps the agents
    from taking the cluster apart then. With a share of more than one half it no longer does. A rehearsal on the
    embedded AWS, which has a handful of nodes, may have any share.
    """
    if file.cloud == "aws" and file.health_mode == "act" and file.breaker_share > MOST_SHARE:
        yield Broken(
            path=file.at("breaker_share"),
            message=f"agents may take {file.breaker_share:.0%} of the nodes within an hour",
            fix="write 0.1",
        )


@rule(
    "HF733",
    severity="warning",
    title="Nodes that the agent acts on have lifecycle scripts",
    each=EnvironmentFile,
    source="Holdfast",
)
def agent_reaches_nodes(file: EnvironmentFile, deployment: Deployment) -> Iterator[Broken]:
    """
    Lifecycle scripts install the health agent. In a group of mode none no script runs, so its nodes are not monitored,
    and their faults are left to HyperPod alone.
    """
    if file.health_mode != "act":
        return
    for group in deployment.cluster.instance_groups:
        if group.lifecycle is None:
            yield Broken(
                path=group.at("lifecycle"),
                message="no script runs on the nodes of this group, so they have no health agent",
                fix="write extension, or set health.mode: observe",
            )


@rule(
    "HF734",
    severity="warning",
    title="Under Kubernetes the agent that acts is a pod",
    each=EnvironmentFile,
    source="Holdfast",
)
def agent_is_a_pod(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """
    HyperPod is asked for another node by a label of its Kubernetes node, which only a pod with a service account may
    change. The unit on a node observes and asks for nothing, whatever its mode. Under Slurm the unit asks, and there is
    nothing to run an image.
    """
    on_eks = "eks" in file.orchestrators
    if on_eks and file.health_mode == "act" and file.agent_image_source is None:
        yield Broken(
            path=file.at("health_mode"),
            message="no image of the agent is set, so no component may request its remedies",
            fix="add images.health_agent, or set health.mode: observe",
        )
    for setting, what in (("agent_image_source", "health_agent"), ("operator_image_source", "job_operator")):
        if not on_eks and getattr(file, setting) is not None:
            yield Broken(
                path=file.at(setting),
                message=f"an image of the {what.replace('_', ' ')} is set, which only Kubernetes runs",
                fix=f"remove images.{what}",
            )

"""Refusals on AWS, with the command for SSM."""

from holdfast.cli.deployed.cluster import cluster_arn, cluster_nodes, controller_group
from holdfast.cli.deployed.sessions import Context
from holdfast.cli.terminal import CommandError


def refuse_on_aws(context: Context, *, what: str, node: str | None = None) -> None:
    """Raise CommandError with the target for SSM for a cluster on AWS; do nothing for the local cloud."""
    if context.session.cloud != "aws":
        return
    raise CommandError(
        f"{what} does not work on AWS yet, where commands on a node go through SSM; nothing was touched. By hand: "
        f"aws ssm start-session --target {ssm_target(context, node=node)} --region {context.session.region}"
    )


def ssm_target(context: Context, *, node: str | None = None) -> str:
    """
    Return the SSM target of a node (SageMaker guide, "Accessing cluster nodes"). Raises: CommandError: no such node.
    """
    nodes = cluster_nodes(context)
    if node is not None:
        names = {one["InstanceId"]: one for one in nodes}
        names |= {str(one.get("PrivateDnsHostname", "")).partition(".")[0]: one for one in nodes}
        names |= {str(one.get("PrivatePrimaryIp", "")): one for one in nodes}
        chosen = names.get(node)
    else:
        group = controller_group(context)
        chosen = next((one for one in nodes if one["InstanceGroupName"] == group), nodes[0] if nodes else None)
    if chosen is None:
        known = ", ".join(one["InstanceId"] for one in nodes) or "none"
        raise CommandError(f"cluster {context.session.cluster_name} has no node {node!r}; its nodes: {known}")
    cluster_id = cluster_arn(context).rpartition("/")[2]
    return f"sagemaker-cluster:{cluster_id}_{chosen['InstanceGroupName']}-{chosen['InstanceId']}"

"""5xx: what roles may do."""

from collections.abc import Iterator

from holdfast.catalog.facts import VPC_ACTIONS
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.model import MANAGED_POLICY, Cluster, Deployment, Group, Role, groups_of, mounting
from holdfast.validation.rules.lifecycle import ROLE


@rule("HF510", title="The execution role can be assumed by SageMaker", each=Cluster, source=ROLE)
def role_trust(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """Its trust policy names sagemaker.amazonaws.com."""
    for role in _roles(cluster):
        if "sagemaker.amazonaws.com" not in role.trusted_services:
            yield refused(
                role.at("trusted_services"),
                f"trust in {', '.join(sorted(role.trusted_services)) or 'no service'}",
                allowed="trust in sagemaker.amazonaws.com",
                fix="add it to the trust policy",
            )


@rule("HF511", title="The execution role has what nodes need", each=Cluster, source=ROLE)
def role_policy(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """
    AmazonSageMakerClusterInstanceRolePolicy, or statements that allow what it does: logs, metrics, session manager.
    """
    for role in _roles(cluster):
        own = role.allows("logs:PutLogEvents") and role.allows("ssmmessages:OpenDataChannel")
        if MANAGED_POLICY not in role.managed_policies and not own:
            yield refused(
                role.at("managed_policies"),
                f"a role without {MANAGED_POLICY}",
                allowed="this policy, or statements that allow the same",
                fix="attach the managed policy",
            )


@rule(
    "HF512",
    title="The execution role can attach nodes to the VPC",
    each=Cluster,
    source="awsome-distributed-ai, 1.AmazonSageMakerClustersExecutionRolePolicy.json: 'Unable to retrieve subnets'",
)
def role_vpc(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """
    The managed policy has no action of EC2. With a VPC the role needs those on network interfaces and those that
    describe subnets and security groups.
    """
    if cluster.vpc is None:
        return
    for role in _roles(cluster):
        missing = [action for action in VPC_ACTIONS if not role.allows(action)]
        if missing:
            yield refused(
                role.at("statements"),
                f"a role without {', '.join(missing)}",
                allowed="a role with these permissions, because the group has a VpcConfig",
                fix="allow them",
            )


@rule(
    "HF513",
    title="The execution role may describe an EFA-enabled file system",
    each=Cluster,
    source="awsome-distributed-ai 1202, 1209",
)
def role_fsx(cluster: Cluster, deployment: Deployment) -> Iterator[Broken]:
    """
    Without fsx:DescribeFileSystems the mount of an EFA-enabled Lustre file system silently stays on TCP. Under EKS the
    CSI driver mounts, with a role of its own.
    """
    if not any(lustre.efa and mounting(lustre.id, deployment) for lustre in deployment.lustre_file_systems):
        return
    for role in _roles(cluster):
        if not role.allows("fsx:DescribeFileSystems"):
            yield refused(
                role.at("statements"),
                "a role without fsx:DescribeFileSystems",
                allowed="a role with this permission, because the file system has EFA",
                fix="allow it",
            )


@rule(
    "HF514",
    severity="warning",
    title="Policies of roles allow no action by wildcard",
    each=Role,
    source="AWS Well-Architected, SEC03-BP02",
)
def wildcard_actions(role: Role, _: Deployment) -> Iterator[Broken]:
    """`*` and `service:*` give users of a node more than nodes need."""
    for statement in role.statements:
        if statement.effect == "Allow" and any(action == "*" or action.endswith(":*") for action in statement.actions):
            yield Broken(
                path=statement.at("actions"),
                message=f"the role may do {', '.join(statement.actions)}",
                fix="name the actions",
            )


def _roles(cluster: Cluster) -> list[Role]:
    groups: list[Group] = [group for group in groups_of(cluster) if group.role is not None]
    return list(dict.fromkeys(group.role for group in groups if group.role is not None))

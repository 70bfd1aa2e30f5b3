"""5xx: what denies and boundaries leave, and what nodes are given by name."""

import re
from collections.abc import Iterator

from holdfast.catalog import bounds
from holdfast.catalog.facts import EKS_ACTIONS, NODE_ACTIONS, VPC_ACTIONS, managed_policies
from holdfast.validation.cloudformation import Node, Resource, distance
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.iam import (
    ROLE,
    Grant,
    grants_in,
    grants_of,
    managed_names,
    reads_all,
    roles_of_groups,
)
from holdfast.validation.model import MANAGED_POLICY, App, Deployment, text_of
from holdfast.validation.rules.iam.statements import HYPERPOD_IAM, IAM, MISSPELT
from holdfast_common import closest_word

LONG_NAME = 24
POLICIES = bounds("managed_policies").most


@rule(
    "HF529",
    title=f"A role has at most {POLICIES} managed policies",
    each=App,
    source=f"{IAM}, 'IAM and AWS STS quotas': 10, and {POLICIES} on request",
)
def number_of_policies(app: App, _: Deployment) -> Iterator[Broken]:
    """IAM refuses to attach more. Statements of one purpose fit into one policy."""
    for role, node in app.each("AWS::IAM::Role"):
        policies = node.get("ManagedPolicyArns").items() or ()
        if len(policies) > POLICIES:
            yield refused(
                f"{role.path}.ManagedPolicyArns",
                f"{len(policies)} managed policies",
                allowed=f"at most {POLICIES}",
                fix="join policies of your own",
            )


@rule(
    "HF534",
    title="No statement denies what nodes need",
    each=App,
    source=f"{HYPERPOD_IAM}; {IAM}, 'Policy evaluation logic'",
)
def denied(app: App, _: Deployment) -> Iterator[Broken]:
    """
    An explicit Deny wins over every Allow, that of the managed policy included. On the execution role one for what
    nodes do stops them from starting.
    """
    for cluster, _group, role in _each_role(app):
        needed = [*NODE_ACTIONS, *_needed(app, cluster)]
        for grant in grants_of(app, role):
            if grant.effect != "Deny" or grant.conditions or not (grant.actions or grant.all_but):
                continue
            hit = [action for action in needed if grant.names(action) and _about(grant, action)]
            if hit:
                yield refused(
                    grant.path,
                    f"a Deny of {', '.join(hit[:5])}",
                    allowed=f"what nodes need, for {role.logical_id}",
                    fix="narrow the Deny to what nodes do not need, by its actions, resources or a condition",
                )


@rule(
    "HF535",
    title="Permissions boundaries allow what nodes need",
    each=App,
    source=f"{IAM}, 'Permissions boundaries for IAM entities'",
)
def boundary(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A role may do what its policies and its boundary both allow. A boundary that leaves out network interfaces, logs or
    Session Manager takes them away from the nodes.
    """
    for cluster, _group, role in _each_role(app):
        node = app.node(role).get("PermissionsBoundary")
        policy = node.resource("AWS::IAM::ManagedPolicy")
        if policy is not None:
            grants = grants_in(app.node(policy).get("PolicyDocument"))
            if not grants or not all(each.sure and each.effect for each in grants):
                continue
            needed = [*NODE_ACTIONS, *_needed(app, cluster)]
            missing = [
                action
                for action in needed
                if not any(each.effect == "Allow" and each.names(action) for each in grants)
                or any(each.effect == "Deny" and not each.conditions and each.names(action) for each in grants)
            ]
        else:
            name = str(text_of(node.value) or "").rpartition("/")[2]
            known = managed_policies().get(name) if ":iam::aws:policy/" in str(text_of(node.value) or "") else None
            needed = [*NODE_ACTIONS, *_needed(app, cluster)]
            missing = [] if known is None else [action for action in needed if action not in known.allows]
        if missing:
            yield refused(
                node.path,
                f"a boundary that does not allow {', '.join(missing[:6])}",
                allowed="one that allows what nodes need",
                fix=f"allow them in the boundary of {role.logical_id}",
            )


@rule("HF536", title="Roles of EKS nodes have the permissions that EKS needs", each=App, source=HYPERPOD_IAM)
def eks_actions(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Under EKS the execution role needs more than under Slurm: addresses for pods, network interfaces, and images from
    ECR. With Slurm's rights nodes join, and pods get neither address nor image.
    """
    for cluster, _group, role in _each_role(app):
        if not app.node(cluster).get("Orchestrator", "Eks").known or not reads_all(app, role):
            continue
        given = given_by_managed(app, role)
        if given is None:
            continue
        allowed = [each for each in grants_of(app, role) if each.effect == "Allow"]
        missing = [
            action for action in EKS_ACTIONS if action not in given and not any(each.names(action) for each in allowed)
        ]
        if missing:
            yield refused(
                f"{role.path}.Policies",
                f"a role without {', '.join(missing[:8])}{' and more' * (len(missing) > 8)}",
                allowed="a role for nodes on EKS that has these permissions",
                fix="allow them, as the page's policy for Amazon EKS does",
            )


@rule("HF537", title="AWS managed policies have names that exist", each=App, source="AWS managed policy reference")
def managed_policy_names(app: App, _: Deployment) -> Iterator[Broken]:
    """
    IAM refuses a policy that does not exist. Some have service-role/ in their path, most have none; those of
    service-linked roles can be attached to nothing else.
    """
    known = managed_policies()
    for role, properties in app.each(ROLE, "AWS::IAM::User", "AWS::IAM::Group"):
        for entry in properties.get("ManagedPolicyArns").items() or ():
            name = str(entry.value).rpartition("/")[2]
            if re.match(r"arn:aws[a-z-]*:iam::\d{12}:policy/", str(entry.value)) and name in known:
                yield refused(
                    entry.path,
                    f"{name} as a policy of the account",
                    allowed=f"AWS's, arn:aws:iam::aws:policy/{known[name].name}",
                    fix="write aws in place of the account",
                )
        for path, name in managed_names(app, role) or ():
            short = name.rpartition("/")[2]
            policy = known.get(short)
            if policy is None:
                meant = closest_word(short, known)
                far = MISSPELT if len(short) < LONG_NAME else 2 * MISSPELT
                if meant is not None and distance(meant, short) <= far:
                    yield refused(
                        path,
                        f"policy/{name}",
                        allowed="AWS managed policies that exist",
                        fix=f"did you mean {known[meant].name}?",
                    )
            elif policy.service_linked:
                yield refused(
                    path,
                    f"{short}, the policy of a service-linked role",
                    allowed="policies that can be attached",
                    fix=f"attach {MANAGED_POLICY}" if "SageMaker" in short else "attach one for roles of your own",
                )
            elif policy.name != name:
                yield refused(
                    path, f"policy/{name}", allowed=f"policy/{policy.name}", fix=f"write policy/{policy.name}"
                )


@rule(
    "HF539", title="The execution role has the policy for nodes, not the one for people", each=App, source=HYPERPOD_IAM
)
def full_access(app: App, _: Deployment) -> Iterator[Broken]:
    """
    AmazonSageMakerFullAccess is for people who use SageMaker. Nodes need AmazonSageMakerClusterInstanceRolePolicy:
    without it Session Manager does not reach them.
    """
    for _cluster, _group, role in _each_role(app):
        named = managed_names(app, role) or []
        names = {name for _, name in named}
        wrong = next((path for path, name in named if name == "AmazonSageMakerFullAccess"), None)
        if wrong is not None and MANAGED_POLICY not in names:
            yield refused(
                wrong,
                "AmazonSageMakerFullAccess on nodes",
                allowed=f"{MANAGED_POLICY}",
                fix=f"attach {MANAGED_POLICY} in its place",
            )


def given_by_managed(app: App, role: Resource) -> frozenset[str] | None:
    """Relevant actions of a role's AWS managed policies; None if not all are known."""
    named = managed_names(app, role)
    if named is None or any(name.rpartition("/")[2] not in managed_policies() for _, name in named):
        return None
    return frozenset(each for _, name in named for each in managed_policies()[name.rpartition("/")[2]].allows)


def _each_role(app: App) -> Iterator[tuple[Resource, Node, Resource]]:
    seen: set[tuple[Resource, Resource]] = set()
    for cluster, group, role in roles_of_groups(app):
        if (cluster, role) not in seen:
            seen.add((cluster, role))
            yield cluster, group, role


def _needed(app: App, cluster: Resource) -> tuple[str, ...]:
    node = app.node(cluster)
    return (
        EKS_ACTIONS if node.get("Orchestrator", "Eks").present else VPC_ACTIONS if node.get("VpcConfig").present else ()
    )


def _about(grant: Grant, action: str) -> bool:
    if action.startswith("s3:"):
        return any(
            each in ("*", "arn:aws:s3:::*") or "sagemaker-" in each or "lifecycle" in each.lower()
            for each in grant.resources
        )
    return (
        any(each == "*" or each.endswith(":*") or "network-interface" in each for each in grant.resources)
        or not grant.resources
    )

"""5xx: what roles of nodes, control planes and pods need beside what every node does."""

from collections.abc import Iterator

from holdfast.validation.cloudformation import Resource
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.iam import grants_of, managed_names, reads_all, role_of, roles_of_groups
from holdfast.validation.model import App, Deployment
from holdfast.validation.rules.iam.limits import given_by_managed
from holdfast.validation.rules.iam.statements import HYPERPOD_IAM

EKS_ROLES = "EKS user guide, 'Amazon EKS cluster IAM role' and 'Amazon EKS node IAM role'"
_FULL = {"AdministratorAccess", "PowerUserAccess"}


@rule("HF544", severity="warning", title="Nodes may tag their network interfaces", each=App, source=HYPERPOD_IAM)
def interface_tags(app: App, _: Deployment) -> Iterator[Broken]:
    """
    In a VPC of yours HyperPod tags the network interfaces of nodes, with ec2:CreateTags on
    arn:aws:ec2:*:*:network-interface/*, which AmazonEKS_CNI_Policy allows as well. Without, the node of an interface is
    unknown.
    """
    for role in _node_roles(app, vpc=True):
        managed = {name for _path, name in managed_names(app, role) or ()}
        if "AmazonEKS_CNI_Policy" not in managed and not _may(app, role, "ec2:CreateTags"):
            yield Broken(
                path=f"{role.path}.Policies",
                message=f"{role.logical_id} may not tag network interfaces (ec2:CreateTags)",
                fix="allow ec2:CreateTags on arn:aws:ec2:*:*:network-interface/*",
            )


@rule("HF545", title="Nodes may ask for the credentials of their pods' roles", each=App, source=HYPERPOD_IAM)
def pod_roles(app: App, _: Deployment) -> Iterator[Broken]:
    """
    "eks-auth:AssumeRoleForPodIdentity is optional. It's required if you plan to use EKS Pod identity": the agent on
    each node asks with the node's role.
    """
    used = [each for each, _node in app.each("AWS::EKS::PodIdentityAssociation")]
    used += [each for each, node in app.each("AWS::EKS::Addon") if node.get("PodIdentityAssociations").present]
    if not used:
        return
    for role in _node_roles(app, vpc=False, eks=True):
        if not _may(app, role, "eks-auth:AssumeRoleForPodIdentity"):
            yield refused(
                f"{role.path}.Policies",
                f"a role without eks-auth:AssumeRoleForPodIdentity, beside {used[0].logical_id}",
                allowed="a role with this permission, where pods get their roles from EKS Pod Identity",
                fix=f"allow it in {role.logical_id}",
            )


@rule(
    "HF546",
    title="The controller may read the secret of its accounting database",
    each=App,
    source="SageMaker developer guide, 'External accounting database': the execution role reads the secret",
)
def secret_of_database(app: App, _: Deployment) -> Iterator[Broken]:
    """slurmdbd gets name and password from the secret, with the execution role of the controller."""
    for cluster, group, role in roles_of_groups(app):
        secret = app.node(cluster).get("Orchestrator", "Slurm", "AccountingDatabase", "SecretArn")
        if not secret.known or group.get("SlurmConfig", "NodeType").text() not in ("Controller", None):
            continue
        if (reads_all(app, role) and given_by_managed(app, role) is not None) and (
            not _may(app, role, "secretsmanager:GetSecretValue")
        ):
            yield refused(
                f"{role.path}.Policies",
                f"a role without secretsmanager:GetSecretValue, for {secret.path.rpartition('.')[2]}",
                allowed="this permission on the secret of the accounting database",
                fix=f"allow it in {role.logical_id}",
            )


@rule("HF547", title="Roles of EKS clusters have the managed policies of EKS", each=App, source=EKS_ROLES)
def eks_roles(app: App, _: Deployment) -> Iterator[Broken]:
    """
    The role of a control plane has AmazonEKSClusterPolicy, that of a node group AmazonEKSWorkerNodePolicy (or the
    minimal one), or statements to the same end.
    """
    for kind, name, expected in (
        ("AWS::EKS::Cluster", "RoleArn", ("AmazonEKSClusterPolicy", "AmazonEKSServicePolicy")),
        ("AWS::EKS::Nodegroup", "NodeRole", ("AmazonEKSWorkerNodePolicy", "AmazonEKSWorkerNodeMinimalPolicy")),
    ):
        for _resource, node in app.each(kind):
            role = role_of(node.get(name))
            named = managed_names(app, role) if role is not None and reads_all(app, role) else None
            if role is None or named is None or grants_of(app, role):
                continue
            names = {each.rpartition("/")[2] for _path, each in named}
            if not names & {*expected, *_FULL}:
                yield refused(
                    f"{role.path}.ManagedPolicyArns",
                    f"{', '.join(sorted(names)) or 'no policy'} on the role of {kind.rpartition('::')[2]}",
                    allowed=f"{expected[0]}",
                    fix=f"attach {expected[0]} to {role.logical_id}",
                )


@rule("HF549", title="Restricted groups may read and write their data", each=App, source=HYPERPOD_IAM)
def data_of_restricted(app: App, _: Deployment) -> Iterator[Broken]:
    """
    "You must add the additional Amazon S3 permissions to the execution role" of restricted groups: s3:ListBucket on the
    bucket, s3:GetObject, s3:PutObject and s3:DeleteObject on what is in it.
    """
    for _cluster, group, role in roles_of_groups(app):
        if ".RestrictedInstanceGroups." not in group.path or not reads_all(app, role):
            continue
        allowed = [each for each in grants_of(app, role) if each.effect == "Allow"]
        missing = [each for each in ("s3:GetObject", "s3:ListBucket") if not any(own.names(each) for own in allowed)]
        if missing:
            yield refused(
                f"{role.path}.Policies",
                f"a role without {' and '.join(missing)} of its own, for a restricted group",
                allowed="these permissions on the bucket of the jobs' data",
                fix=f"allow s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject in {role.logical_id}",
            )


def _node_roles(app: App, *, vpc: bool, eks: bool = False) -> list[Resource]:
    found = []
    for cluster, _group, role in roles_of_groups(app):
        node = app.node(cluster)
        if ((not vpc or node.get("VpcConfig").present) and (not eks or node.get("Orchestrator", "Eks").present)) and (
            reads_all(app, role) and given_by_managed(app, role) is not None
        ):
            found.append(role)
    return list(dict.fromkeys(found))


def _may(app: App, role: Resource, action: str, *, own: bool = False) -> bool:
    given = given_by_managed(app, role) or frozenset()
    full = {name for _path, name in managed_names(app, role) or ()} & _FULL
    allowed = any(each.effect == "Allow" and each.names(action) for each in grants_of(app, role))
    return allowed or bool(full) or (not own and action in given)

"""5xx: policies of templates: who may take a role, what a role may do, and what takes it away again."""

import re
from collections.abc import Iterator, Mapping

from holdfast.catalog.facts import EKS_ACTIONS, NODE_ACTIONS, VPC_ACTIONS, iam_actions, managed_policies
from holdfast.validation.cloudformation import Node, Resource, closest, distance
from holdfast.validation.engine import Broken, refused, rule, said
from holdfast.validation.iam import (
    ROLE,
    Grant,
    grants_in,
    grants_of,
    managed_names,
    principals,
    reads_all,
    role_of,
    roles_of_groups,
)
from holdfast.validation.model import MANAGED_POLICY, App, Deployment, text_of

HYPERPOD_IAM = "SageMaker developer guide, 'AWS Identity and Access Management for SageMaker HyperPod'"
IAM = "IAM user guide"
MISSPELT = 2
"""Letters by which a misspelt name differs from the one that was meant."""
LONG_NAME = 24

_TAKERS: Mapping[tuple[str, str], str] = {
    ("AWS::EKS::Cluster", "RoleArn"): "eks.amazonaws.com",
    ("AWS::EKS::Nodegroup", "NodeRole"): "ec2.amazonaws.com",
    ("AWS::EKS::FargateProfile", "PodExecutionRoleArn"): "eks-fargate-pods.amazonaws.com",
    ("AWS::EKS::PodIdentityAssociation", "RoleArn"): "pods.eks.amazonaws.com",
    ("AWS::Lambda::Function", "Role"): "lambda.amazonaws.com",
    ("AWS::EC2::FlowLog", "DeliverLogsPermissionArn"): "vpc-flow-logs.amazonaws.com",
    ("AWS::Grafana::Workspace", "RoleArn"): "grafana.amazonaws.com",
    ("AWS::SageMaker::Cluster", "ClusterRole"): "hyperpod.sagemaker.amazonaws.com",
    ("AWS::RDS::DBInstance", "MonitoringRoleArn"): "monitoring.rds.amazonaws.com",
    ("AWS::StepFunctions::StateMachine", "RoleArn"): "states.amazonaws.com",
    ("AWS::CodeBuild::Project", "ServiceRole"): "codebuild.amazonaws.com",
    ("AWS::SageMaker::MlflowTrackingServer", "RoleArn"): "sagemaker.amazonaws.com",
    ("AWS::SageMaker::NotebookInstance", "RoleArn"): "sagemaker.amazonaws.com",
    ("AWS::Events::Rule", "RoleArn"): "events.amazonaws.com",
    ("AWS::Scheduler::Schedule", "Target.RoleArn"): "scheduler.amazonaws.com",
}
"""Who takes the role of a property."""


@rule(
    "HF530",
    title="Trust policies name the service that uses the role",
    each=App,
    source=f"{IAM}, 'Roles terms and concepts': trust policy",
)
def takers(app: App, _: Deployment) -> Iterator[Broken]:
    """
    The trust policy of a role names the service that takes it: EKS for a control plane, EC2 for a node group,
    pods.eks.amazonaws.com for pod identity, and so on. CloudFormation makes the role as it is; the service refuses it.
    """
    for (kind, where), service in _TAKERS.items():
        for _resource, node in app.each(kind):
            role = role_of(node.get(*where.split(".")))
            if role is not None:
                yield from _not_taken(app, role, service, node.get(*where.split(".")).path)
    for _resource, node in app.each("AWS::EKS::Addon"):
        for entry in node.get("PodIdentityAssociations").items() or ():
            role = role_of(entry.get("RoleArn"))
            if role is not None:
                yield from _not_taken(app, role, "pods.eks.amazonaws.com", entry.path)


@rule(
    "HF531",
    title="Trust policies allow sts:AssumeRole",
    each=App,
    source=f"{IAM}, 'AWS JSON policy elements: Principal'; EKS user guide, 'Pod identity: create the role'",
)
def trust_policies(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A trust policy has a principal and an action of STS: sts:AssumeRole, for a service; sts:TagSession beside it for pod
    identity. Service principals are written service.amazonaws.com.
    """
    for _role, properties in app.each(ROLE):
        trust = properties.get("AssumeRolePolicyDocument")
        for grant in grants_in(trust):
            yield from _trust(grant)


@rule(
    "HF532",
    severity="warning",
    title="Actions of policies exist in IAM",
    each=App,
    source="Service authorization reference, as cfn-lint carries it",
)
def actions_exist(app: App, _: Deployment) -> Iterator[Broken]:
    """
    IAM takes a misspelt action and allows nothing with it. Actions are service:Action; wildcards have to match one. An
    action that is newer than the list can be accepted.
    """
    for grant in _all_grants(app):
        for action in grant.actions:
            yield from _action(grant, action)


@rule(
    "HF533",
    title="Policies name resources of the kind that their actions work on",
    each=App,
    source="S3 user guide, 'Policies and permissions: resources'",
)
def resources_of_actions(app: App, _: Deployment) -> Iterator[Broken]:
    """
    s3:GetObject is about objects, arn:aws:s3:::bucket/*, and s3:ListBucket about the bucket, arn:aws:s3:::bucket. A
    statement whose only resources are of the other kind allows nothing.
    """
    for grant in _all_grants(app):
        if grant.all_but or not grant.resources or (grant.node.get("Principal").present and False):
            continue
        yield from _of_another_service(grant)
        objects = [each for each in grant.actions if re.fullmatch(r"s3:(get|put|delete)object", each)]
        buckets = [each for each in grant.actions if each in ("s3:listbucket", "s3:getbucketlocation")]
        arns = [_bucket_part(entry) for entry in _entries(grant.node.get("Resource"))]
        if None in arns:
            continue
        if objects and not any(arn == "*" or "/" in str(arn) or str(arn).endswith("*") for arn in arns):
            yield refused(
                f"{grant.path}.Resource",
                f"{objects[0]} on a bucket as a whole",
                allowed="objects: the bucket's ARN and /*",
                fix="add a resource that ends with /*",
            )
        if buckets and all("/" in str(arn) for arn in arns):
            yield refused(
                f"{grant.path}.Resource",
                f"{buckets[0]} on objects",
                allowed="the bucket's ARN",
                fix="add the bucket's ARN without /*",
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
    for role, _properties in app.each(ROLE, "AWS::IAM::User", "AWS::IAM::Group"):
        for path, name in managed_names(app, role) or ():
            short = name.rpartition("/")[2]
            policy = known.get(short)
            if policy is None:
                meant = closest(short, known)
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
    "HF538",
    title="Roles that create clusters have iam:PassRole for the roles of clusters",
    each=App,
    source=HYPERPOD_IAM,
)
def pass_role(app: App, _: Deployment) -> Iterator[Broken]:
    """
    CreateCluster and UpdateCluster hand a role to SageMaker, for which the caller needs iam:PassRole on it. A condition
    on iam:PassedToService has to name sagemaker.amazonaws.com.
    """
    for role, _properties in app.each(ROLE):
        grants = [each for each in grants_of(app, role) if each.effect == "Allow"]
        makes = next(
            (
                each
                for each in grants
                if any(a in ("sagemaker:createcluster", "sagemaker:updatecluster") for a in each.actions)
            ),
            None,
        )
        if makes is None or not reads_all(app, role):
            continue
        if (managed_names(app, role) or [("", "?")])[0][1] not in ("?",) and managed_names(app, role):
            continue
        passing = [each for each in grants if each.names("iam:PassRole")]
        if not passing:
            yield refused(
                makes.path,
                "sagemaker:CreateCluster without iam:PassRole",
                allowed="both actions in one role",
                fix="allow iam:PassRole on the execution role",
            )
    for grant in _all_grants(app):
        if grant.effect == "Allow" and any(action == "iam:passrole" for action in grant.actions):
            for operator, keys in grant.conditions.items():
                value = keys.get("iam:PassedToService") if isinstance(keys, Mapping) else None
                texts = [value] if isinstance(value, str) else value if isinstance(value, list) else []
                for text in texts:
                    if isinstance(text, str) and "." not in text.replace("*", "."):
                        yield refused(
                            f"{grant.path}.Condition.{operator}",
                            said(text),
                            allowed="a service principal such as sagemaker.amazonaws.com",
                            fix=f"write {text}.amazonaws.com",
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
    """What AWS managed policies of a role allow of what rules ask about; None where they are not all known."""
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
    """Whether a Deny is about any resource that nodes use, as far as its resources tell."""
    if action.startswith("s3:"):
        return any(
            each in ("*", "arn:aws:s3:::*") or "sagemaker-" in each or "lifecycle" in each.lower()
            for each in grant.resources
        )
    return (
        any(each == "*" or each.endswith(":*") or "network-interface" in each for each in grant.resources)
        or not grant.resources
    )


def _not_taken(app: App, role: Resource, service: str, path: str) -> Iterator[Broken]:
    grants = grants_in(app.node(role).get("AssumeRolePolicyDocument"))
    named = [node for grant in grants if grant.effect == "Allow" for node in principals(grant, "Service")]
    texts = [text_of(node.value) for node in named]
    if not grants or any(text is None for text in texts) or not all(grant.effect for grant in grants):
        return
    federated = any(principals(grant, "Federated") for grant in grants)
    if any(_same_service(str(text), service) for text in texts) or (federated and service.startswith("pods.")):
        return
    if service == "events.amazonaws.com" and not texts:
        return
    yield refused(
        f"{role.path}.AssumeRolePolicyDocument",
        f"trust in {', '.join(map(str, texts)) or 'no service'}, for a role that {path.rpartition('.')[0]} uses",
        allowed=f"trust in {service}",
        fix=f"name {service} as the principal",
    )


def _same_service(text: str, service: str) -> bool:
    name = service.removesuffix(".amazonaws.com")
    return text in (service, f"{name}.${{...}}") or text == "*"


def _trust(grant: Grant) -> Iterator[Broken]:
    if grant.effect != "Allow" or not grant.sure:
        return
    if not grant.node.get("Principal").present and not grant.node.get("NotPrincipal").present:
        yield refused(grant.path, "a statement without a principal", allowed="one that says who", fix="add Principal")
    wrong = [action for action in grant.actions if not action.startswith(("sts:", "eks-auth:")) and action != "*"]
    if wrong:
        yield refused(
            f"{grant.path}.Action", wrong[0], allowed="actions of sts in a trust policy", fix="write sts:AssumeRole"
        )
    services = [text for node in principals(grant, "Service") if (text := text_of(node.value))]
    if services and not any(grant.names(action) for action in ("sts:AssumeRole",)):
        yield refused(
            f"{grant.path}.Action",
            ", ".join(grant.actions) or "no action",
            allowed="sts:AssumeRole for a service",
            fix="write sts:AssumeRole",
        )
    if "pods.eks.amazonaws.com" in services and not grant.names("sts:TagSession"):
        yield refused(
            f"{grant.path}.Action",
            "pod identity without sts:TagSession",
            allowed="sts:AssumeRole and sts:TagSession",
            fix="add sts:TagSession",
        )
    for node in principals(grant, "Service"):
        text = text_of(node.value)
        if (
            isinstance(node.value, str)
            and isinstance(text, str)
            and not re.fullmatch(
                r"[a-z0-9.-]+\.(amazonaws\.com(\.cn)?|amazonaws\.eu|aws\.internal|aws\.com|amazon\.com|c2s\.ic\.gov|sc2s\.sgov\.gov)|\*",
                text,
            )
        ):
            yield refused(
                node.path,
                said(text),
                allowed="a service such as sagemaker.amazonaws.com",
                fix=f"write {text.split('.')[0].lower()}.amazonaws.com",
            )
        elif isinstance(text, str) and (meant := _misspelt_service(text)):
            yield refused(node.path, said(text), allowed="service principals that exist", fix=f"did you mean {meant}?")


_SERVICES = {
    "sagemaker",
    "eks",
    "ec2",
    "lambda",
    "fsx",
    "s3",
    "logs",
    "events",
    "states",
    "codebuild",
    "codepipeline",
    "ssm",
    "cloudformation",
    "rds",
    "ecs-tasks",
    "ecs",
    "backup",
    "grafana",
    "aps",
    "scheduler",
    "delivery.logs",
    "sns",
    "sqs",
    "cloudwatch",
    "monitoring.rds",
    "vpc-flow-logs",
    "eks-fargate-pods",
    "pods.eks",
    "guardduty",
    "kms",
    "config",
    "glue",
    "bedrock",
    "batch",
    "firehose",
    "apigateway",
    "autoscaling",
    "cloudtrail",
    "secretsmanager",
    "datasync",
}


def _misspelt_service(text: str) -> str | None:
    name = text.partition(".amazonaws.com")[0]
    if name in _SERVICES or name.count(".") > 1 or re.search(r"-\d$", name):
        return None
    meant = closest(name, _SERVICES)
    return f"{meant}.amazonaws.com" if meant is not None and distance(meant, name) <= MISSPELT else None


def _all_grants(app: App) -> Iterator[Grant]:
    """The statements of every policy document in the app, trust policies left out."""
    if "grants" not in app.memo:
        app.memo["grants"] = [grant for node in documents(app) for grant in grants_in(node)]
    yield from app.memo["grants"]


def documents(app: App) -> Iterator[Node]:
    """Every policy document in the app, trust policies left out."""
    for _resource, node in app.each(ROLE, "AWS::IAM::User", "AWS::IAM::Group"):
        yield from (entry.get("PolicyDocument") for entry in node.get("Policies").items() or ())
    for _resource, node in app.each(
        "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy", "AWS::S3::BucketPolicy",
        "AWS::EC2::VPCEndpoint", "AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy",
    ):  # fmt: skip
        yield node.get("PolicyDocument")
    for _resource, node in app.each("AWS::KMS::Key"):
        yield node.get("KeyPolicy")


def _action(grant: Grant, action: str) -> Iterator[Broken]:
    place = f"{grant.path}.{'NotAction' if grant.all_but else 'Action'}"
    if action == "*":
        return
    service, colon, name = action.partition(":")
    if not colon:
        yield refused(
            place, said(action), allowed="service:Action", fix=f"write the service before it, as in s3:{action}"
        )
        return
    known = iam_actions(service)
    if not known:
        if re.fullmatch(r"[a-z0-9-]+", service):
            meant = closest(
                service,
                (
                    "s3",
                    "ec2",
                    "ecr",
                    "eks",
                    "eks-auth",
                    "fsx",
                    "kms",
                    "iam",
                    "logs",
                    "sts",
                    "ssm",
                    "ssmmessages",
                    "sagemaker",
                    "cloudwatch",
                    "secretsmanager",
                    "sns",
                    "sqs",
                    "lambda",
                    "aps",
                ),
            )
            yield refused(
                place,
                f"{action}, of an unknown service",
                allowed="services of IAM",
                fix=f"did you mean {meant}:?" if meant else "write the service's prefix",
            )
        return
    if any(sign in name for sign in "*?"):
        pattern = re.compile(re.escape(name).replace(r"\*", ".*").replace(r"\?", "."))
        if not any(pattern.fullmatch(each) for each in known):
            yield refused(
                place, f"{action}, which matches no action", allowed=f"actions of {service}", fix="correct the pattern"
            )
    elif name not in known:
        meant = closest(name, known)
        written = _as_written(grant, action)
        yield refused(
            place,
            f"{written}, which {service} does not have",
            allowed=f"actions of {service}",
            fix=f"did you mean {service}:{meant}?" if meant else "look it up in the service authorization reference",
        )


def _as_written(grant: Grant, action: str) -> str:
    texts = grant.node.get("NotAction" if grant.all_but else "Action").strings()
    return next((each for each in texts if each.lower() == action), action)


_WITH_ARNS = {"ec2", "s3", "kms", "fsx", "secretsmanager", "sagemaker", "eks", "sns", "sqs", "lambda", "ecr", "iam"}


def _of_another_service(grant: Grant) -> Iterator[Broken]:
    """Actions of a service on resources of others alone."""
    services = set()
    for text in grant.resources:
        parts = text.split(":")
        if parts[0] != "arn" or len(parts) < 6 or "$" in parts[2] or "*" in parts[2]:
            return
        services.add(parts[2])
    wrong = [
        each
        for each in grant.actions
        if (own := each.partition(":")[0]) in _WITH_ARNS and services and own not in services
    ]
    if wrong and services <= _WITH_ARNS and len(wrong) == len(grant.actions):
        yield refused(
            f"{grant.path}.Resource",
            f"{wrong[0]} on resources of {', '.join(sorted(services))}",
            allowed=f"resources of {wrong[0].partition(':')[0]}",
            fix='write the resources that the actions are about, or "*"',
        )


def _entries(node: Node) -> list[Node]:
    return (node.items() or []) if isinstance(node.value, list) else [node] if node.present else []


def _bucket_part(entry: Node) -> str | None:
    """What a resource says of S3: the bucket, with /... for objects; None where it is not known."""
    bucket = entry.resource("AWS::S3::Bucket")
    if bucket is not None:
        return bucket.logical_id
    text = text_of(entry.value)
    if text is None:
        return None
    return text if text == "*" else text.removeprefix("arn:aws:s3:::") if ":s3:::" in text or "${" in text else "*"

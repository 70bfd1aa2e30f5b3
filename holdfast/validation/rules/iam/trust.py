"""5xx: who may take a role."""

import re
from collections.abc import Iterator, Mapping

from holdfast.validation.cloudformation import Resource, distance
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.iam import (
    ROLE,
    Grant,
    grants_in,
    grants_of,
    managed_names,
    principals,
    reads_all,
    role_of,
)
from holdfast.validation.model import App, Deployment, text_of
from holdfast.validation.rules.iam.statements import HYPERPOD_IAM, IAM, MISSPELT, all_grants
from holdfast_common import closest_word

_TAKERS: Mapping[tuple[str, str], str] = {
    ("AWS::EKS::Cluster", "RoleArn"): "eks.amazonaws.com",
    ("AWS::EKS::Nodegroup", "NodeRole"): "ec2.amazonaws.com",
    ("AWS::EKS::FargateProfile", "PodExecutionRoleArn"): "eks-fargate-pods.amazonaws.com",
    ("AWS::EKS::PodIdentityAssociation", "RoleArn"): "pods.eks.amazonaws.com",
    ("AWS::Lambda::Function", "Role"): "lambda.amazonaws.com",
    ("AWS::EC2::FlowLog", "DeliverLogsPermissionArn"): "vpc-flow-logs.amazonaws.com",
    ("AWS::Grafana::Workspace", "RoleArn"): "grafana.amazonaws.com",
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
    for grant in all_grants(app):
        if grant.effect == "Allow" and any(action == "iam:passrole" for action in grant.actions):
            for operator, keys in grant.conditions.items():
                value = keys.get("iam:PassedToService") if isinstance(keys, Mapping) else None
                texts = [value] if isinstance(value, str) else value if isinstance(value, list) else []
                for text in texts:
                    if isinstance(text, str) and "." not in text.replace("*", "."):
                        yield refused(
                            f"{grant.path}.Condition.{operator}",
                            show(text),
                            allowed="a service principal such as sagemaker.amazonaws.com",
                            fix=f"write {text}.amazonaws.com",
                        )


def _not_taken(app: App, role: Resource, service: str, path: str) -> Iterator[Broken]:
    grants = grants_in(app.node(role).get("AssumeRolePolicyDocument"))
    named = [node for grant in grants if grant.effect == "Allow" for node in principals(grant, "Service")]
    texts = [text_of(node.value) for node in named]
    if not grants or any(text is None for text in texts) or not all(grant.effect for grant in grants):
        return
    federated = any(principals(grant, "Federated") for grant in grants)
    if any(_is_of(text, service) for text in texts) or (federated and service.startswith("pods.")):
        return
    if service == "events.amazonaws.com" and not texts:
        return
    yield refused(
        f"{role.path}.AssumeRolePolicyDocument",
        f"trust in {', '.join(map(str, texts)) or 'no service'}, for a role that {path.rpartition('.')[0]} uses",
        allowed=f"trust in {service}",
        fix=f"name {service} as the principal",
    )


def _is_of(principal: str | None, service: str) -> bool:
    """Return True for a service's principal. Step Functions has one for each Region, too."""
    regional = re.fullmatch(r"states\..+\.amazonaws\.com", principal or "")
    return principal in (service, "*") or bool(regional and service == "states.amazonaws.com")


def _trust(grant: Grant) -> Iterator[Broken]:
    if grant.effect != "Allow" or not grant.sure:
        return
    if not grant.node.get("Principal").present and not grant.node.get("NotPrincipal").present:
        yield refused(grant.path, "no principal", allowed="one in each statement", fix="add Principal")
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
    asked = [key for keys in grant.conditions.values() if isinstance(keys, Mapping) for key in keys]
    if not _WITH_EXTERNAL_ID.issuperset(services) and any(key.lower() == "sts:externalid" for key in asked):
        yield refused(
            f"{grant.path}.Condition",
            f"a condition on sts:ExternalId, which {services[0]} does not send",
            allowed="aws:SourceAccount or aws:SourceArn for a service",
            fix="remove the condition, or write aws:SourceAccount",
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
                show(text),
                allowed="a service such as sagemaker.amazonaws.com",
                fix=f"write {text.split('.')[0].lower()}.amazonaws.com",
            )
        elif isinstance(text, str) and (meant := _misspelt_service(text)):
            yield refused(node.path, show(text), allowed="service principals that exist", fix=f"did you mean {meant}?")


_WITH_EXTERNAL_ID = {"firehose.amazonaws.com", "cognito-idp.amazonaws.com"}
"""Firehose developer guide, 'Controlling access'; Cognito developer guide, 'SMS message settings for user pools'."""
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
    meant = closest_word(name, _SERVICES)
    # One letter more or less makes another service of a short name: ds and rds, dms and kms.
    far = min(MISSPELT, len(name) // 2 - 1)
    return f"{meant}.amazonaws.com" if meant is not None and distance(meant, name) <= far else None

"""Queries about existing resources that an environment uses; responses are stored without judgement."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote

from holdfast.validation.cloudformation import UNRESOLVED
from holdfast.validation.model import BucketFact, Deployment, EksFact, Existing, ExistingFacts, RoleFact

Clients = Callable[[str], Any]
NOT_THERE = ("404", "NoSuchBucket", "NotFound", "NoSuchEntity", "ResourceNotFoundException")
NOT_OURS = ("403",)
"""A HEAD request has no other code: its answer has no body."""
LOOK_AROUND = (
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
)
"""No resource limits them, so that asking for any asks for all."""
T = TypeVar("T")


def existing_facts(deployment: Deployment, *, clients: Clients) -> ExistingFacts | None:
    """Facts; None if the environment uses no existing resource."""
    there = None if deployment.file is None else deployment.file.existing
    if there is None or not deployment.is_known("account"):
        return None
    return ExistingFacts(
        path="",
        buckets=asked(
            lambda: {
                name: _bucket(clients("s3"), name, deployment.account) for name in {each.name for each in there.buckets}
            }
        ),
        eks_clusters=asked(lambda: _eks_clusters(clients, there)),
        roles=asked(lambda: dict(_roles(clients, there, deployment))),
        vpc_of_subnets=asked(lambda: _vpcs(clients, deployment)) if there.is_known("eks_cluster") else UNRESOLVED,
    )


def asked(question: Callable[[], T]) -> T:
    """Return an answer of the account; UNRESOLVED where access is denied."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return question()
    except (BotoCoreError, ClientError):
        unknown: T = UNRESOLVED
        return unknown


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _bucket(client: Any, name: str, account: str | None) -> BucketFact:
    from botocore.exceptions import ClientError

    try:
        answer = client.head_bucket(Bucket=name, ExpectedBucketOwner=account)
    except ClientError as error:
        if _code(error) in NOT_THERE:
            return BucketFact(state="missing")
        if _code(error) in NOT_OURS:
            return BucketFact(state="foreign")
        raise
    return BucketFact(state="own", region=answer.get("BucketRegion"))


def _eks_clusters(clients: Clients, there: Existing) -> Mapping[str, EksFact]:
    from botocore.exceptions import ClientError

    if not there.is_known("eks_cluster") or there.eks_cluster is None:
        return {}
    name, client = there.eks_cluster, clients("eks")
    try:
        found = client.describe_cluster(name=name)["cluster"]
    except ClientError as error:
        if _code(error) in NOT_THERE:
            return {}
        raise
    return {
        name: EksFact(
            version=found["version"],
            authentication_mode=(found.get("accessConfig") or {}).get("authenticationMode", "CONFIG_MAP"),
            status=found["status"],
            vpc_id=(found.get("resourcesVpcConfig") or {}).get("vpcId", ""),
            addons=frozenset(client.list_addons(clusterName=name, maxResults=100)["addons"]),
        )
    }


def _roles(clients: Clients, there: Existing, deployment: Deployment) -> Iterator[tuple[str, RoleFact]]:
    from botocore.exceptions import ClientError

    for arn in there.roles:
        client = clients("iam")
        try:
            role = client.get_role(RoleName=arn.rpartition("/")[2])["Role"]
        except ClientError as error:
            if _code(error) in NOT_THERE:
                continue
            raise
        denied = asked(partial(_denied, client, arn, tuple(_needed(there, deployment, arn))))
        trusted = frozenset(_trusted(role["AssumeRolePolicyDocument"]))
        yield arn, RoleFact(trusted_services=trusted, denied=None if denied is UNRESOLVED else denied)


def _needed(there: Existing, deployment: Deployment, role: str) -> Iterator[tuple[tuple[str, ...], str]]:
    partition, cluster = role.split(":")[1], deployment.cluster
    yield LOOK_AROUND, "*"
    for subnet in cluster.vpc.subnets if cluster.vpc is not None else ():
        arn = f"arn:{partition}:ec2:{deployment.region}:{deployment.account}:subnet/{subnet.id}"
        yield ("ec2:CreateNetworkInterface",), arn
    for scripts in there.scripts:
        if scripts.role == role:
            yield ("s3:GetObject",), f"arn:{partition}:s3:::{scripts.bucket}/lifecycle"
            yield ("s3:ListBucket",), f"arn:{partition}:s3:::{scripts.bucket}"


def _denied(client: Any, role: str, questions: tuple[tuple[tuple[str, ...], str], ...]) -> tuple[str, ...]:
    found: list[str] = []
    for actions, resource in questions:
        answer = client.simulate_principal_policy(
            PolicySourceArn=role, ActionNames=list(actions), ResourceArns=[resource], ContextEntries=_context(role)
        )
        found += [
            result["EvalActionName"] + (f" on {resource}" if resource != "*" else "")
            for result in answer["EvaluationResults"]
            if result["EvalDecision"] != "allowed"
        ]
    return tuple(found)


def _context(role: str) -> list[dict[str, Any]]:
    """
    Context keys of a node's request: the simulator knows only given ones, and AWS's policy for nodes needs the account.
    """
    account = role.split(":")[4]
    context = {
        "aws:ResourceAccount": account,
        "aws:PrincipalAccount": account,
        "aws:PrincipalArn": role,
        "s3:ResourceAccount": account,
    }
    return [
        {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
        for key, value in context.items()
    ]


def _trusted(document: Any) -> Iterator[str]:
    """Services that may assume a role; boto3 returns the document as an object, other clients as text."""
    parsed = json.loads(unquote(document)) if isinstance(document, str) else document
    statements = parsed.get("Statement", ())
    for statement in [statements] if isinstance(statements, dict) else statements:
        principal = statement.get("Principal", {})
        services = principal.get("Service", ()) if isinstance(principal, dict) else ()
        if statement.get("Effect") == "Allow":
            yield from [services] if isinstance(services, str) else services


def _vpcs(clients: Clients, deployment: Deployment) -> Mapping[str, str]:
    there = deployment.file.existing if deployment.file is not None else None
    vpc = deployment.cluster.vpc
    if there is None or there.eks_cluster is None or vpc is None:
        return {}
    ids = sorted(subnet.id for subnet in vpc.subnets if subnet.id.startswith("subnet-"))
    answer = clients("ec2").describe_subnets(Filters=[{"Name": "subnet-id", "Values": ids}])
    return {row["SubnetId"]: row["VpcId"] for row in answer["Subnets"]}

"""
Rights that an execution role needs before nodes are created.

Source: SageMaker developer guide, sagemaker-hyperpod-prerequisites-iam ("IAM role for SageMaker HyperPod"). "Unable to
retrieve subnets" is from a public CDK app whose role's policy was late. Assumed: all rights are checked at creation.
"""

from collections.abc import Iterator
from typing import Any

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import refuse
from holdfast.localcloud.aws.iam import Rights

LOOKED_UP = {
    "ec2:DescribeSubnets": "Unable to retrieve subnets.",
    "ec2:DescribeSecurityGroups": "Unable to retrieve security groups.",
    "ec2:DescribeVpcs": "Unable to retrieve VPCs.",
    "ec2:DescribeDhcpOptions": "Unable to retrieve DHCP options.",
    "ec2:DescribeNetworkInterfaces": "Unable to retrieve network interfaces.",
}
ON_INTERFACES = (
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
    "ec2:CreateTags",
)
ON_INTERFACES_UNDER_EKS = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:DetachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
)
UNDER_EKS = ("ec2:DescribeInstances", "ec2:DescribeInstanceTypes", "ec2:DescribeTags", "ecr:GetAuthorizationToken")


def check_role(
    role: str,
    *,
    client: ClientFactory,
    place: tuple[str, str],
    vpc: dict[str, Any] | None,
    scripts: set[tuple[str, str]],
    eks: bool,
) -> None:
    """
    Reject a role that SageMaker cannot assume or that lacks rights.

    Args:
        role: Its ARN.
        client: Factory of clients of the other services.
        place: Account and region.
        vpc: Subnets and security groups of its nodes; None without a VPC of the account.
        scripts: Bucket and key of the lifecycle scripts.
        eks: True if its nodes join an EKS cluster.
    """
    account, region = place
    rights = Rights(client=client, role=role, session="SageMaker", account=account)
    if not rights.trusts("sagemaker.amazonaws.com", **{"aws:SourceAccount": account}):
        raise refuse(f"The execution role {role} does not exist or cannot be assumed by SageMaker.")
    for words, action, resource in _needed(account, region, vpc, eks=eks):
        judged = rights.to(action, resource)
        if not judged.allowed:
            raise refuse(f"{words} {judged.reason}".strip())
    same = {"aws:ResourceAccount": account, "aws:PrincipalAccount": account}
    for bucket, key in sorted(scripts):
        for action, resource in (("s3:ListBucket", bucket), ("s3:GetObject", f"{bucket}/{key}")):
            about = {**same, "s3:prefix": key} if action == "s3:ListBucket" else same
            judged = rights.to(action, f"arn:aws:s3:::{resource}", about)
            if not judged.allowed:
                raise refuse(f"Unable to download the lifecycle script s3://{bucket}/{key}. {judged.reason}")


def _needed(account: str, region: str, vpc: dict[str, Any] | None, *, eks: bool) -> Iterator[tuple[str, str, str]]:
    if not vpc:
        return
    place = f"arn:aws:ec2:{region}:{account}"
    interface = f"{place}:network-interface/eni-00000000000000000"
    for action, words in LOOKED_UP.items():
        yield words, action, "*"
    made_in = [interface, *(f"{place}:subnet/{name}" for name in vpc["Subnets"])]
    for resource in [*made_in, *(f"{place}:security-group/{name}" for name in vpc["SecurityGroupIds"])]:
        yield "Unable to create network interfaces.", "ec2:CreateNetworkInterface", resource
    for action in (*ON_INTERFACES, *(ON_INTERFACES_UNDER_EKS if eks else ())):
        yield "Unable to use network interfaces.", action, interface
    for action in UNDER_EKS if eks else ():
        yield "Nodes cannot join the EKS cluster.", action, "*"

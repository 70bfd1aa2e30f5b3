"""AWS managed policies: paths, and allowed actions of those that nodes need."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

POLICIES_FILE = Path(__file__).with_name("policies.json")

VPC_ACTIONS = (
    "ec2:CreateNetworkInterface", "ec2:CreateNetworkInterfacePermission", "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission", "ec2:DescribeDhcpOptions", "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs", "ec2:DetachNetworkInterface",
)  # fmt: skip
"""What nodes in a VPC need."""
EKS_ACTIONS = (
    "ec2:AssignPrivateIpAddresses", "ec2:AttachNetworkInterface", "ec2:CreateNetworkInterface",
    "ec2:CreateNetworkInterfacePermission", "ec2:DeleteNetworkInterface", "ec2:DeleteNetworkInterfacePermission",
    "ec2:DescribeInstances", "ec2:DescribeInstanceTypes", "ec2:DescribeNetworkInterfaces", "ec2:DescribeTags",
    "ec2:DescribeVpcs", "ec2:DescribeDhcpOptions", "ec2:DescribeSubnets", "ec2:DescribeSecurityGroups",
    "ec2:DetachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute", "ec2:UnassignPrivateIpAddresses",
    "ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetAuthorizationToken", "ecr:GetDownloadUrlForLayer",
)  # fmt: skip
"""What nodes on EKS need."""
NODE_ACTIONS = (
    "logs:CreateLogStream", "logs:PutLogEvents", "s3:GetObject", "s3:ListBucket", "ssmmessages:OpenDataChannel",
    "ssmmessages:CreateDataChannel", "cloudwatch:PutMetricData",
)  # fmt: skip
"""What all nodes need; AmazonSageMakerClusterInstanceRolePolicy allows it."""
ASKED = tuple(sorted({*VPC_ACTIONS, *EKS_ACTIONS, *NODE_ACTIONS, "kms:CreateGrant", "kms:DescribeKey",
                      "fsx:DescribeFileSystems", "s3:PutObject", "eks-auth:AssumeRoleForPodIdentity"}))  # fmt: skip
"""The actions that rules ask about."""


@dataclass(frozen=True, kw_only=True)
class ManagedPolicy:
    name: str
    """With what is before it in its ARN: ``service-role/AmazonEBSCSIDriverPolicy``."""
    allows: frozenset[str]
    """Those of ``ASKED`` that it allows, on whatever resource."""

    @property
    def service_linked(self) -> bool:
        """Return True if only a service-linked role can have it."""
        return self.name.startswith("aws-service-role/")


@functools.cache
def managed_policies() -> Mapping[str, ManagedPolicy]:
    """All policies, by name without path."""
    data = json.loads(POLICIES_FILE.read_text())
    return {
        name: ManagedPolicy(name=f"{path}{name}", allows=_actions(int(bits, 16)))
        for name, (path, bits) in data["policies"].items()
    }


@functools.cache
def _actions(bits: int) -> frozenset[str]:
    return frozenset(action for index, action in enumerate(ASKED) if bits >> index & 1)

"""Rights of health agents in AWS; docs/concepts/security.md lists them."""

from aws_cdk import ArnFormat, Fn, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

STREAMS = ("logs:CreateLogStream", "logs:GetLogEvents")
"""Streams of events: made, and counted after a loss of state."""


def shipping(events: logs.ILogGroup) -> "list[iam.PolicyStatement]":
    """Every node: put events into streams of instances only."""
    streams = Stack.of(events).format_arn(
        service="logs",
        resource="log-group",
        resource_name=f"{events.log_group_name}:log-stream:i-*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    return [
        iam.PolicyStatement(sid="MakeStreams", actions=list(STREAMS), resources=[events.log_group_arn]),
        iam.PolicyStatement(sid="ShipEvents", actions=["logs:PutLogEvents"], resources=[streams]),
    ]


def watching(scope: Construct, construct_id: str, *, role: iam.IRole, name: str, arn: str) -> iam.Policy:
    """
    Slurm controller: see the cluster's nodes, and the findings of HyperPod's agents.

    A separate policy, because it names the cluster, which is created after the role's.
    """
    stack = Stack.of(scope)
    found = f"/aws/sagemaker/Clusters/{name}/{Fn.select(1, Fn.split('/', arn))}"
    health = f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:{found}:*"
    return iam.Policy(
        scope,
        construct_id,
        roles=[role],
        statements=[
            iam.PolicyStatement(sid="WatchNodes", actions=["sagemaker:ListClusterNodes"], resources=[arn]),
            iam.PolicyStatement(sid="ReadHealthRecords", actions=["logs:FilterLogEvents"], resources=[health]),
        ],
    )

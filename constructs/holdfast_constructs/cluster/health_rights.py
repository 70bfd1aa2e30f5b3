"""What the health agent of nodes may ask of AWS, statement by statement; docs/concepts/security.md lists them."""

from aws_cdk import ArnFormat, Fn, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

STREAMS = ("logs:CreateLogStream", "logs:GetLogEvents")
"""Streams of events: made, and counted after a loss of state."""


def shipping(events: logs.ILogGroup) -> "list[iam.PolicyStatement]":
    """Of every node: to put its events into streams of instances, and into no other of the cluster's log group."""
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
    Of a Slurm controller: to see the nodes of its cluster, and what HyperPod's own agent found on them.

    A policy of its own, because it names the cluster, which is made after the role's.
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

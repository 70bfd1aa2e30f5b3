from typing import Any

from aws_cdk import ContextProvider, Stack, Token
from constructs import Construct

TYPE_NAME = "AWS::SageMaker::Cluster"
OF_ONE = ("VpcConfig", "Orchestrator")
PROVIDER = "cc-api-provider"
"""Name in the CDK CLI (cloud-assembly-schema, ContextProvider); jsii gives Python only the member's name."""


def looked_up(scope: Construct, *, cluster_name: str | None, cluster_arn: str | None) -> dict[str, Any]:
    """
    Properties of a cluster from Cloud Control; dummies before the CDK CLI's lookup. Raises ValueError unless exactly
    one of name and ARN is given, or without account and region.
    """
    if (cluster_name is None) == (cluster_arn is None):
        raise ValueError(
            f"cluster: got name {cluster_name!r} and ARN {cluster_arn!r} to look up; allowed: exactly one of them"
        )
    for value in (cluster_name, cluster_arn):
        if Token.is_unresolved(value):
            raise ValueError("cluster: got a value to look up that is known only at deployment; allowed: a plain one")
    stack = Stack.of(scope)
    if Token.is_unresolved(stack.account) or Token.is_unresolved(stack.region):
        raise ValueError(
            f"cluster: got a stack {stack.node.path} without account and region to look in; allowed: one with both; "
            "give it env, or use from_cluster_attributes"
        )
    dummy_arn = f"arn:aws:sagemaker:{stack.region}:{stack.account}:cluster/0123456789ab"
    dummy: dict[str, object] = {"ClusterName": cluster_name or "dummy", "ClusterArn": cluster_arn or dummy_arn}
    # The properties that both ListResources and GetResource give; the others are asked for by their ARN alone.
    query: dict[str, object] = {
        "typeName": TYPE_NAME,
        "propertiesToReturn": ["ClusterArn", "ClusterName", *(OF_ONE if cluster_arn is not None else ())],
    }
    if cluster_arn is not None:
        query["exactIdentifier"] = cluster_arn
        dummy |= {"VpcConfig": {"SecurityGroupIds": ["sg-12345678"], "Subnets": ["subnet-12345678"]}}
    else:
        query |= {"propertyMatch": {"ClusterName": cluster_name}, "expectedMatchCount": "exactly-one"}
    found = ContextProvider.get_value(scope, provider=PROVIDER, props=query, dummy_value=[dummy]).value
    properties: dict[str, Any] = found[0]
    return properties

"""Nodes and log groups of EKS clusters, through the other services' APIs."""

import contextlib

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory


def has_nodes(client: ClientFactory, cluster: str, *, own: bool) -> bool:
    """Return True if pods find a node: of a node group (``own``), or of a HyperPod cluster on EKS."""
    if own:
        return True
    sagemaker = client("sagemaker")
    for summary in sagemaker.list_clusters()["ClusterSummaries"]:
        name = summary["ClusterName"]
        try:
            orchestrator = sagemaker.describe_cluster(ClusterName=name).get("Orchestrator", {})
            if orchestrator.get("Eks", {}).get("ClusterArn", "").rsplit("/", 1)[-1] != cluster:
                continue
            nodes = sagemaker.list_cluster_nodes(ClusterName=name)["ClusterNodeSummaries"]
        except ClientError:
            continue  # it went in between
        if any(node["InstanceStatus"]["Status"] == "Running" for node in nodes):
            return True
    return False


def make_log_group(client: ClientFactory, name: str) -> None:
    """Create a log group that keeps its events for ever, as AWS services do."""
    logs = client("logs")
    with contextlib.suppress(logs.exceptions.ResourceAlreadyExistsException):
        logs.create_log_group(logGroupName=name)

"""What runs on an EKS cluster, and where its logs go: looked up and made through the other services' own APIs."""

import contextlib

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory


def has_nodes(client: ClientFactory, cluster: str, *, own: bool) -> bool:
    """Whether pods find a node: of a node group (``own``), or of a HyperPod cluster that is orchestrated by it."""
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
    """Make a log group as a service does that finds none: it keeps its events for ever."""
    logs = client("logs")
    with contextlib.suppress(logs.exceptions.ResourceAlreadyExistsException):
        logs.create_log_group(logGroupName=name)

"""Deployed state of a cluster, read from AWS APIs and from Slurm, never from the environment file."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from holdfast.cli.deployed.aws import AwsError
from holdfast.cli.deployed.sessions import Context
from holdfast.cli.terminal import CommandError

NODE_PAGE = 100
"""Most nodes of one page (API_ListClusterNodes); by default 10."""


def stack_outputs(context: Context) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in describe_stack(context).get("Outputs", [])}


def cluster_nodes(context: Context) -> list[dict[str, Any]]:
    """``ListClusterNodes`` with the address of each, as the API returns them, controllers first."""
    return describe_cluster(context)[1]


def cluster_arn(context: Context) -> str:
    """Return the ARN of the cluster. Raises: CommandError: no such cluster."""
    cluster, _ = describe_cluster(context)
    if not cluster:
        raise _gone(context)
    return str(cluster["ClusterArn"])


def _gone(context: Context) -> CommandError:
    session = context.session
    what = f"there is no cluster {session.cluster_name} in {session.region}"
    if not session.environment:
        return CommandError(what)
    name = session.environment
    return CommandError(f"{what}; environment {name} is gone: holdfast up {name}, or another one: holdfast use ENV")


def controller_hostname(context: Context) -> str:
    """Return the controller's host name. Raises: CommandError: the cluster has none."""
    cluster, nodes = describe_cluster(context)
    if not cluster:
        raise _gone(context)
    controllers = {
        group["InstanceGroupName"]
        for group in cluster.get("InstanceGroups", [])
        if group.get("SlurmConfig", {}).get("NodeType") == "Controller"
    }
    for node in nodes:
        if node["InstanceGroupName"] in controllers:
            return hostname_of(node)
    raise CommandError(f"cluster {context.session.cluster_name} has no Slurm controller; see: holdfast status")


def jobs_prefix(context: Context) -> tuple[str, str, str]:
    """
    Return (bucket, prefix, directory on nodes) for job files. Raises: CommandError: no association imports ``jobs``.
    """
    cluster, _ = describe_cluster(context)
    mount_path = next(
        (
            storage["FsxLustreConfig"].get("MountPath", "/fsx")
            for group in cluster.get("InstanceGroups", [])
            for storage in group.get("InstanceStorageConfigs", [])
            if "FsxLustreConfig" in storage
        ),
        None,
    )
    for association in associations_of(context, stack_outputs(context).get("FileSystemId", "")):
        if association["FileSystemPath"].rstrip("/").endswith("/jobs") and mount_path is not None:
            bucket, _, prefix = association["DataRepositoryPath"].removeprefix("s3://").partition("/")
            return bucket, prefix.strip("/"), mount_path + association["FileSystemPath"].rstrip("/")
    raise CommandError(
        "the cluster's file system has no dataset at /jobs; add one with auto_import to storage.lustre.datasets"
    )


def mount_paths(context: Context) -> list[str]:
    """Mount paths of the nodes, such as /fsx (InstanceStorageConfigs of DescribeCluster)."""
    cluster, _ = describe_cluster(context)
    defaults = {"FsxLustreConfig": "/fsx", "FsxOpenZfsConfig": "/home"}
    found = {
        storage[kind].get("MountPath", default)
        for group in cluster.get("InstanceGroups", [])
        for storage in group.get("InstanceStorageConfigs", [])
        for kind, default in defaults.items()
        if kind in storage
    }
    return sorted(found)


def instance_id_of(context: Context, *, node: str) -> str:
    """Instance id for an id, host name, address or Kubernetes name; the name itself if unknown."""
    short = node.removeprefix("hyperpod-").partition(".")[0] if not node[:1].isdecimal() else node
    for one in cluster_nodes(context):
        hostname = hostname_of(one)
        if short in (one["InstanceId"], hostname, hostname.removeprefix("ip-").replace("-", ".")):
            return str(one["InstanceId"])
    return short


def node_names(context: Context) -> set[str]:
    nodes = cluster_nodes(context)
    return {name for one in nodes for name in (one["InstanceId"], hostname_of(one)) if name}


def by_name(context: Context) -> Context:
    """Return the context with the cluster's name in place of its ARN: log groups carry the name."""
    if not context.session.cluster_name.startswith("arn:"):
        return context
    cluster, _ = describe_cluster(context)
    if not cluster:
        raise CommandError(f"there is no cluster {context.session.cluster_name}")
    return replace(context, session=replace(context.session, cluster_name=str(cluster["ClusterName"])))


def describe_stack(context: Context) -> dict[str, Any]:
    if not context.session.stack_name:
        return {}
    try:
        return context.describe_stack()
    except AwsError as error:
        if "does not exist" not in error.message:
            raise
        return {"StackStatus": "absent"}


def describe_cluster(context: Context) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    name = context.session.cluster_name
    try:
        cluster = context.ask("sagemaker", "DescribeCluster", ClusterName=name)
        summaries = list(
            pages(
                context,
                "sagemaker",
                "ListClusterNodes",
                items="ClusterNodeSummaries",
                ClusterName=name,
                MaxResults=NODE_PAGE,
            )
        )
    except AwsError as error:
        if not error.code.startswith("ResourceNotFound"):
            raise
        return {}, []
    order = {group["InstanceGroupName"]: place for place, group in enumerate(cluster.get("InstanceGroups", []))}
    # A node may outlive its group for a moment.
    nodes = sorted(summaries, key=lambda one: (order.get(one["InstanceGroupName"], len(order)), _address_key(one)))
    return cluster, nodes


def pages(context: Context, service: str, operation: str, *, items: str, **parameters: Any) -> Iterator[Any]:
    while True:
        page = context.ask(service, operation, **parameters)
        yield from page.get(items, ())
        if not page.get("NextToken"):
            return
        parameters["NextToken"] = page["NextToken"]


def associations_of(context: Context, file_system_id: str) -> Iterable[dict[str, Any]]:
    answer = context.ask(
        "fsx", "DescribeDataRepositoryAssociations", Filters=[{"Name": "file-system-id", "Values": [file_system_id]}]
    )
    associations: list[dict[str, Any]] = answer["Associations"]
    return associations


def hostname_of(node: dict[str, Any]) -> str:
    return str(node.get("PrivateDnsHostname", "")).partition(".")[0]


def _address_key(node: dict[str, Any]) -> tuple[int, ...]:
    return tuple(int(part) for part in hostname_of(node).split("-")[1:] if part.isdigit())

"""Instance counts of groups that were changed outside of the stack, such as by MoveClusterNodes."""

from collections.abc import Mapping
from typing import Any

from holdfast.importing.account.deployed import aws_client

TIMEOUT_S = 10.0


def live_counts(*, cluster_name: str, region: str, client: Mapping[str, str] | None = None) -> dict[str, int]:
    """Return group -> TargetCount of DescribeCluster; none where Karpenter scales, or AWS does not answer."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        asked = aws_client("sagemaker", region=region, arguments=client or {}, timeout_s=TIMEOUT_S)
        cluster = asked.describe_cluster(ClusterName=cluster_name)
    except (BotoCoreError, ClientError):
        return {}
    if cluster.get("AutoScaling", {}).get("Mode") == "Enable":
        return {}
    return {group["InstanceGroupName"]: group["TargetCount"] for group in cluster.get("InstanceGroups", ())}


def count_remarks(deployed: Mapping[str, Any], desired: Mapping[str, Any], live: Mapping[str, int]) -> list[str]:
    """Return a remark for each group whose count in the account is not that of the deployed file."""
    before, after = _totals(deployed), _totals(desired)
    return [
        f"group {name}: the account has {live[name]} instances and the deployed file {count}: they were moved, added "
        f"or deleted outside of the stack; the next deployment that changes the cluster sets {after.get(name, 0)}"
        for name, count in before.items()
        if name in live and live[name] not in (count, after.get(name))
    ]


def _totals(environment: Mapping[str, Any]) -> dict[str, int]:
    groups = environment["cluster"].get("instance_groups") or ()
    return {group["name"]: int(group["instance_count"]) + int(group.get("spare_count") or 0) for group in groups}

"""
Creation request of a cluster, from DescribeCluster, whose fields differ: target counts, current and desired values.
"""

from collections.abc import Mapping
from typing import Any

RENAMED = {
    "TargetCount": "InstanceCount",
    "MinCount": "MinInstanceCount",
    "DesiredImageId": "ImageId",
    "DesiredImageReleaseVersion": "ImageReleaseVersion",
}
STATE = frozenset(
    {
        "ActiveOperations",
        "ActiveSoftwareUpdateConfig",
        "CurrentCount",
        "CurrentImageId",
        "CurrentImageReleaseVersion",
        "ImageVersionStatus",
        "InstanceTypeDetails",
        "SoftwareUpdateStatus",
        "Status",
        "TargetStateCount",
        "TrainingPlanStatus",
    }
)
"""Fields of DescribeCluster about a group's state, which a request does not have."""
CLUSTER_STATE = frozenset({"ClusterArn", "ClusterStatus", "CreationTime", "FailureMessage"})


def request_of(described: Mapping[str, Any]) -> dict[str, Any]:
    request = {key: value for key, value in described.items() if key not in CLUSTER_STATE}
    for key in ("InstanceGroups", "RestrictedInstanceGroups"):
        if key in request:
            request[key] = [_group(group) for group in request[key]]
    shared = request.get("RestrictedInstanceGroupsConfig", {}).get("SharedEnvironmentConfig")
    if shared:
        request["RestrictedInstanceGroupsConfig"] = {"SharedEnvironmentConfig": _desired(shared)}
    if "AutoScaling" in request:
        scaling = request["AutoScaling"]
        request["AutoScaling"] = {key: value for key, value in scaling.items() if key in ("Mode", "AutoScalerType")}
    return request


def _group(details: Mapping[str, Any]) -> dict[str, Any]:
    group = {RENAMED.get(key, key): value for key, value in details.items() if key not in STATE}
    for key in ("InstanceRequirements", "KubernetesConfig", "AutoPatchConfig"):
        if key in group:
            group[key] = _desired(group[key])
    return group


def _desired(details: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in details.items() if not key.startswith("Current")}
    return {key.removeprefix("Desired"): value for key, value in kept.items()}

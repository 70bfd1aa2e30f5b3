"""SageMaker API's views of HyperPod clusters and nodes. Pure."""

from typing import Any

from holdfast.localcloud.aws.sagemaker.store import RESTRICTED, ClusterNode, ClusterRecord

COPIED_SETTINGS = (
    "InstanceGroupName",
    "InstanceType",
    "LifeCycleConfig",
    "ExecutionRole",
    "InstanceStorageConfigs",
    "OnStartDeepHealthChecks",
    "TrainingPlanArn",
    "OverrideVpcConfig",
    "ScheduledUpdateConfig",
    "CapacityRequirements",
    "SlurmConfig",
    "NetworkInterface",
    "EnvironmentConfig",
)
CLUSTER_SETTINGS = (
    "VpcConfig",
    "Orchestrator",
    "NodeRecovery",
    "TieredStorageConfig",
    "NodeProvisioningMode",
    "ClusterRole",
)


def group_details(cluster: ClusterRecord, name: str) -> dict[str, Any]:
    leaving = name in cluster.leaving_groups and name not in cluster.groups
    group = cluster.previous_groups.get(name, {}) if leaving else cluster.groups[name]
    details: dict[str, Any] = {key: group[key] for key in COPIED_SETTINGS if key in group}
    details["InstanceGroupName"] = name
    running = [node for node in cluster.of_group(name) if node.status == "Running"]
    target = 0 if leaving else group["InstanceCount"]
    details |= {
        "CurrentCount": len(running),
        "TargetCount": target,
        "ThreadsPerCore": group.get("ThreadsPerCore", 1),
        "Status": "Deleting" if leaving else _group_status(cluster, name, target),
        "ImageVersionStatus": "UpToDate",
    }
    if "MinInstanceCount" in group:
        details["MinCount"] = group["MinInstanceCount"]
    if "InstanceRequirements" in group:
        types = group["InstanceRequirements"]["InstanceTypes"]
        details["InstanceRequirements"] = {"CurrentInstanceTypes": types, "DesiredInstanceTypes": types}
    if "InstanceRequirements" in group:
        chosen = {"InstanceType": details["InstanceRequirements"]["CurrentInstanceTypes"][0]}
        details["InstanceTypeDetails"] = [
            {**chosen, "CurrentCount": len(running), "ThreadsPerCore": details["ThreadsPerCore"]}
        ]
    rollout = cluster.rollouts.get(name)
    details |= _images(rollout.before if rollout and not rollout.is_rollback else group, desired=group)
    if cluster.software.get(name):
        details["SoftwareUpdateStatus"] = cluster.software[name]
    if "KubernetesConfig" in group:
        details["KubernetesConfig"] = {
            f"{when}{key}": value for key, value in group["KubernetesConfig"].items() for when in ("Current", "Desired")
        }
    if "AutoPatchConfig" in group:
        patch = dict(group["AutoPatchConfig"])
        schedule = patch.pop("PatchSchedule", None)
        if schedule is not None:
            patch |= {"CurrentPatchSchedule": schedule, "DesiredPatchSchedule": schedule}
        details["AutoPatchConfig"] = patch
    return details


def _images(current: dict[str, Any], *, desired: dict[str, Any]) -> dict[str, Any]:
    keys = ("ImageId", "ImageReleaseVersion")
    return {
        f"{when}{key}": group[key]
        for when, group in (("Current", current), ("Desired", desired))
        for key in keys
        if key in group
    }


def _group_status(cluster: ClusterRecord, name: str, target: int) -> str:
    nodes = cluster.of_group(name)
    if name in cluster.rollouts:
        return "SystemUpdating"
    enough = cluster.groups.get(name, {}).get("MinInstanceCount", target)
    settled = len(nodes) == target and all(node.status == "Running" for node in nodes)
    if cluster.settings.get("NodeProvisioningMode") == "Continuous" and cluster.status == "InService":
        return "InService" if sum(node.status == "Running" for node in nodes) >= enough else "Updating"
    if cluster.status in ("Creating", "Deleting", "Failed"):
        return "InService" if settled and cluster.status == "Creating" else cluster.status
    if settled:
        return "InService"
    if cluster.status in ("Updating", "RollingBack"):
        return "Updating"
    return "Degraded"


def instance_status(node: ClusterNode) -> dict[str, str]:
    return {"Status": node.status, "Message": node.message} if node.message else {"Status": node.status}


def hostname(node: ClusterNode, region: str) -> str:
    return f"ip-{node.private_ip.replace('.', '-')}.{region}.compute.internal"


def node_summary(cluster: ClusterRecord, node: ClusterNode, *, with_logical_id: bool) -> dict[str, Any]:
    summary = {
        "InstanceGroupName": node.group,
        "InstanceId": node.instance_id,
        "InstanceType": instance_type(cluster, node.group),
        "LaunchTime": node.launched,
        "InstanceStatus": instance_status(node),
        "PrivateDnsHostname": hostname(node, cluster.region),
    }
    return summary | ({"NodeLogicalId": node.logical_id} if with_logical_id else {})


def node_details(cluster: ClusterRecord, node: ClusterNode) -> dict[str, Any]:
    group = cluster.groups.get(node.group) or cluster.previous_groups.get(node.group, {})
    kept = ("LifeCycleConfig", "OverrideVpcConfig", "InstanceStorageConfigs", "NetworkInterface")
    details = {key: group[key] for key in kept if key in group}
    rollout = cluster.rollouts.get(node.group)
    if rollout is None or rollout.is_rollback or node.instance_id in rollout.done:
        details |= _images(group, desired=group)
    else:
        details |= _images(rollout.before, desired=group)
    if node.updated is not None:
        details["LastSoftwareUpdateTime"] = node.updated
    return details | {
        **node_summary(cluster, node, with_logical_id=True),
        "ThreadsPerCore": group.get("ThreadsPerCore", 1),
        "PrivatePrimaryIp": node.private_ip,
        "Placement": {"AvailabilityZone": node.zone},
        "CapacityType": "Spot" if "Spot" in group.get("CapacityRequirements", {}) else "OnDemand",
    }


def instance_type(cluster: ClusterRecord, group_name: str) -> str:
    group = cluster.groups.get(group_name) or cluster.previous_groups.get(group_name, {})
    chosen = group.get("InstanceType") or group.get("InstanceRequirements", {}).get("InstanceTypes", [""])[0]
    return str(chosen)


def describe(cluster: ClusterRecord) -> dict[str, Any]:
    names = [*cluster.groups, *(name for name in cluster.leaving_groups if name not in cluster.groups)]
    known = {**cluster.previous_groups, **cluster.groups}
    restricted = [name for name in names if RESTRICTED in known.get(name, {})]
    answer = {
        "ClusterArn": cluster.arn,
        "ClusterName": cluster.name,
        "ClusterStatus": cluster.status,
        "CreationTime": cluster.created,
        "InstanceGroups": [group_details(cluster, name) for name in names if name not in restricted],
        **({"RestrictedInstanceGroups": [group_details(cluster, name) for name in restricted]} if restricted else {}),
        **{key: cluster.settings[key] for key in CLUSTER_SETTINGS if key in cluster.settings},
    }
    shared = cluster.settings.get("RestrictedInstanceGroupsConfig", {}).get("SharedEnvironmentConfig")
    if shared is not None:
        reported = {f"{when}{key}": value for key, value in shared.items() for when in ("Current", "Desired")}
        answer["RestrictedInstanceGroupsConfig"] = {"SharedEnvironmentConfig": reported}
    if cluster.failure:
        answer["FailureMessage"] = cluster.failure
    if "AutoScaling" in cluster.settings:
        answer["AutoScaling"] = {**cluster.settings["AutoScaling"], "Status": "InService"}
    return answer

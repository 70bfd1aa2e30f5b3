"""Contradictions in a request to CreateCluster and UpdateCluster, in the service's words where documented. Pure."""

from collections import Counter
from typing import Any

from holdfast.localcloud.aws.common import refuse
from holdfast.localcloud.aws.sagemaker.lifecycle import check_lifecycle
from holdfast.localcloud.aws.sagemaker.store import RESTRICTED

MAX_PERCENTAGE = 100


def check_settings(settings: dict[str, Any], groups: dict[str, dict[str, Any]]) -> None:
    orchestrator = settings.get("Orchestrator")
    if orchestrator is not None and len(orchestrator) != 1:
        raise refuse("Exactly one of Eks or Slurm must be specified in Orchestrator.")
    kind = next(iter(orchestrator or {}), "")
    if not groups:
        raise refuse("At least one instance group must be specified in InstanceGroups.")
    check_lifecycle(settings, groups)
    for name, group in groups.items():
        _check_group(name, group, settings)
        if kind == "Eks":
            _check_group_on_eks(name, group)
        else:
            _check_group_off_eks(name, group)
    if kind == "Eks":
        _check_eks(settings)
    else:
        _check_slurm(settings, groups)
    _check_scaling(settings, kind)
    _check_spot(settings, groups)


def _check_group(name: str, group: dict[str, Any], settings: dict[str, Any]) -> None:
    if ("InstanceType" in group) == ("InstanceRequirements" in group):
        raise refuse(f"Exactly one of InstanceType or InstanceRequirements must be specified for group '{name}'.")
    if group.get("MinInstanceCount", 0) > group["InstanceCount"]:
        raise refuse(f"MinInstanceCount must not exceed InstanceCount in instance group '{name}'.")
    types = group.get("InstanceRequirements", {}).get("InstanceTypes", [])
    if len(set(types)) != len(types):
        raise refuse(f"InstanceTypes of instance group '{name}' contains duplicates.")
    if len(group.get("CapacityRequirements", {})) > 1:
        raise refuse(f"CapacityRequirements of instance group '{name}' must have one of Spot and OnDemand.")
    kinds = Counter(next(iter(config)) for config in group.get("InstanceStorageConfigs", ()))
    for kind in ("FsxLustreConfig", "FsxOpenZfsConfig"):
        if kinds[kind] > 1:
            raise refuse(f"At most one {kind} is allowed in InstanceStorageConfigs of instance group '{name}'.")
        if kinds[kind] and not (group.get("OverrideVpcConfig") or settings.get("VpcConfig")):
            raise refuse("FSx configurations are only supported for Custom VPC")
    for key in ("ScheduledUpdateConfig", "AutoPatchConfig"):
        check_deployment(group.get(key, {}).get("DeploymentConfig", {}), where=f"{key} of instance group '{name}'")


def check_deployment(deployment: dict[str, Any], *, where: str) -> None:
    for key, size in deployment.get("RollingUpdatePolicy", {}).items():
        if size["Type"] == "CAPACITY_PERCENTAGE" and size["Value"] > MAX_PERCENTAGE:
            raise refuse(f"{key} in {where} is {size['Value']} percent; at most {MAX_PERCENTAGE} is allowed.")


def _check_group_on_eks(name: str, group: dict[str, Any]) -> None:
    if "SlurmConfig" in group:
        raise refuse(f"SlurmConfig of instance group '{name}' requires Orchestrator.Slurm.")
    patch = group.get("AutoPatchConfig", {})
    batches = patch.get("DeploymentConfig", {}).get("RollingUpdatePolicy", {})
    if patch.get("PatchingStrategy") == "DrainFirst" and "MaximumBatchSize" not in batches:
        raise refuse(f"PatchingStrategy DrainFirst of instance group '{name}' requires a MaximumBatchSize.")
    if group.get("OnStartDeepHealthChecks") and group.get("KubernetesConfig", {}).get("Taints"):
        raise refuse(f"Instance group '{name}' cannot have custom taints together with OnStartDeepHealthChecks.")


def _check_group_off_eks(name: str, group: dict[str, Any]) -> None:
    if RESTRICTED in group:
        raise refuse(f"Restricted instance group '{name}' requires Orchestrator.Eks.")
    # SageMaker developer guide, sagemaker-hyperpod-ami-auto-patching: "only for HyperPod Amazon EKS clusters"
    for key in ("KubernetesConfig", "CapacityRequirements", "AutoPatchConfig"):
        if key in group and not (key == "CapacityRequirements" and "Spot" not in group[key]):
            raise refuse(f"{key} of instance group '{name}' requires Orchestrator.Eks.")


def _check_eks(settings: dict[str, Any]) -> None:
    if not settings.get("VpcConfig"):
        raise refuse("VpcConfig must be specified when Orchestrator is Eks.")


def _check_scaling(settings: dict[str, Any], kind: str) -> None:
    continuous = settings.get("NodeProvisioningMode") == "Continuous"
    if settings.get("AutoScaling", {}).get("Mode") == "Enable":
        if kind != "Eks" or not continuous:
            raise refuse("AutoScaling requires Orchestrator.Eks and NodeProvisioningMode Continuous.")
        if not settings.get("ClusterRole"):
            raise refuse("AutoScaling requires a ClusterRole.")
        if settings.get("NodeRecovery") == "None":
            raise refuse("AutoScaling requires NodeRecovery Automatic.")
    tiered = settings.get("TieredStorageConfig", {})
    if tiered.get("Mode") == "Disable" and "InstanceMemoryAllocationPercentage" in tiered:
        raise refuse("InstanceMemoryAllocationPercentage requires TieredStorageConfig with Mode Enable.")


def _check_spot(settings: dict[str, Any], groups: dict[str, dict[str, Any]]) -> None:
    """Check that spot capacity and restricted groups match the provisioning mode."""
    continuous = settings.get("NodeProvisioningMode") == "Continuous"
    for name, group in groups.items():
        if "Spot" in group.get("CapacityRequirements", {}) and not continuous:
            raise refuse(f"Spot capacity of instance group '{name}' requires NodeProvisioningMode Continuous.")
        if RESTRICTED in group and continuous:
            raise refuse(f"Restricted instance group '{name}' cannot be combined with NodeProvisioningMode Continuous.")


def _check_slurm(settings: dict[str, Any], groups: dict[str, dict[str, Any]]) -> None:
    slurm = (settings.get("Orchestrator") or {}).get("Slurm")
    configured = {name: group["SlurmConfig"] for name, group in groups.items() if "SlurmConfig" in group}
    continuous = settings.get("NodeProvisioningMode") == "Continuous"
    if slurm is None:
        if configured:
            raise refuse(f"SlurmConfig of instance group '{next(iter(configured))}' requires Orchestrator.Slurm.")
        if continuous:
            raise refuse("NodeProvisioningMode Continuous requires an Orchestrator.")
        return
    if continuous and "SlurmConfigStrategy" in slurm:
        raise refuse("SlurmConfigStrategy cannot be specified when NodeProvisioningMode is Continuous.")
    if "AccountingDatabase" in slurm and not continuous:
        raise refuse("AccountingDatabase requires NodeProvisioningMode Continuous.")
    missing = [name for name in groups if name not in configured]
    if missing:
        raise refuse(f"SlurmConfig must be specified for instance group '{missing[0]}' when Orchestrator is Slurm.")
    _check_slurm_groups(groups, configured)


def _check_slurm_groups(groups: dict[str, dict[str, Any]], configured: dict[str, dict[str, Any]]) -> None:
    kinds = Counter(config["NodeType"] for config in configured.values())
    if kinds["Controller"] != 1:
        raise refuse("Cluster must have exactly one InstanceGroup with Controller node type")
    if kinds["Login"] > 1:
        raise refuse(f"{kinds['Login']} Login Groups found. At most one is allowed.")
    for name, config in configured.items():
        partitions = config.get("PartitionNames", [])
        if config["NodeType"] == "Compute" and not partitions:
            raise refuse(f"PartitionNames is required for Compute instance group '{name}'.")
        if config["NodeType"] != "Compute" and partitions:
            raise refuse("Partitions can only be assigned to Compute node types")
        if config["NodeType"] == "Controller" and groups[name]["InstanceCount"] > 1:
            raise refuse(
                f"Controller instance group '{name}' has {groups[name]['InstanceCount']} instances; one at most."
            )

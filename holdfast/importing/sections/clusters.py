"""``cluster`` section of an environment file."""

from collections.abc import Mapping
from typing import Any

from holdfast.config.models import RestrictedEnvironment
from holdfast.importing.draft import Draft, KeptParts, most_common, roles
from holdfast.importing.sections.groups import instance_group, restricted_group
from holdfast.importing.sections.lifecycle import Scripts
from holdfast.importing.sections.settings import read_back

OWN_TAGS = ("holdfast:", "aws:")
KNOWN = frozenset(
    {
        "AutoScaling",
        "ClusterName",
        "ClusterRole",
        "InstanceGroups",
        "NodeProvisioningMode",
        "NodeRecovery",
        "Orchestrator",
        "RestrictedInstanceGroups",
        "RestrictedInstanceGroupsConfig",
        "Tags",
        "TieredStorageConfig",
        "VpcConfig",
    }
)


def cluster(
    request: Mapping[str, Any],
    tags: Mapping[str, str],
    *,
    environment: str,
    scripts: Scripts,
    keeping: KeptParts,
    imported: Draft,
) -> dict[str, Any]:
    """Return the ``cluster`` section; ``scripts`` has the lifecycle of all groups, a group only differences."""
    for key in sorted(set(request) - KNOWN):
        imported.leave_out("cluster", key, request[key])
    groups = request.get("InstanceGroups") or []
    restricted = request.get("RestrictedInstanceGroups") or []
    kept = roles(request, keeping)
    shared_role = most_common(kept.values()) if len(kept) == len(groups) + len(restricted) else None

    def own_role(group: Mapping[str, Any]) -> dict[str, Any]:
        role = kept.get(group["InstanceGroupName"])
        return {} if role in (None, shared_role) else {"execution_role_arn": role}

    lustre = any(
        "FsxLustreConfig" in config for group in groups for config in group.get("InstanceStorageConfigs") or []
    )
    section = _settings(request, environment, tags, keeping)
    if shared_role is not None:
        section["execution_role_arn"] = shared_role
    section["instance_groups"] = [
        instance_group(group, imported=imported, lustre=lustre, own={**own_role(group), **scripts.of(group)})
        for group in groups
    ]
    if "auto_scaler" in section:
        text = "node pools are not read, see kubectl get nodepools,hyperpodnodeclasses; add them as eks.node_pools"
        imported.note("cluster.auto_scaler", text, decide=True)
    imported.note("cluster.instance_groups", "which nodes of a group are spares is not known; instance_count has all")
    if restricted:
        section["restricted_instance_groups"] = [
            restricted_group(group, imported=imported, own=own_role(group)) for group in restricted
        ]
    shared = (request.get("RestrictedInstanceGroupsConfig") or {}).get("SharedEnvironmentConfig") or {}
    if shared:
        section["restricted_environment"] = read_back(RestrictedEnvironment, shared)
    return section


def _settings(
    request: Mapping[str, Any], environment: str, tags: Mapping[str, str], keeping: KeptParts
) -> dict[str, Any]:
    section: dict[str, Any] = {"name": request["ClusterName"]} if request["ClusterName"] != environment else {}
    section["node_recovery"] = request.get("NodeRecovery", "Automatic")
    if request.get("NodeProvisioningMode"):
        section["node_provisioning_mode"] = request["NodeProvisioningMode"]
    role = request.get("ClusterRole")
    if role is not None and keeping.keeps("roles", role):
        section["cluster_role_arn"] = role
    scaling = request.get("AutoScaling") or {}
    if scaling.get("Mode") == "Enable":
        section["auto_scaler"] = scaling.get("AutoScalerType", "Karpenter")
    tiered = request.get("TieredStorageConfig") or {}
    if tiered.get("Mode") == "Enable":
        section["tiered_storage"] = {"memory_percentage": tiered.get("InstanceMemoryAllocationPercentage", 20)}
    own = {key: value for key, value in tags.items() if not key.startswith(OWN_TAGS)}
    if "Eks" in (request.get("Orchestrator") or {}) and own.get("SageMaker") == "true":
        del own["SageMaker"]  # every cluster on EKS gets it
    return section | ({"tags": own} if own else {})

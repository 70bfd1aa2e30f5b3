"""
CreateCluster request, the common form of all imports.

AWS's samples keep Slurm's settings in a second file, which is merged here.
"""

import re
from collections.abc import Mapping
from typing import Any

from holdfast.importing.draft import Draft, short

LEGACY_KNOWN = frozenset(
    {
        "version",
        "workload_manager",
        "controller_group",
        "login_group",
        "worker_groups",
        "fsx_dns_name",
        "fsx_mountname",
        "fsx_openzfs_dns_name",
    }
)


def with_provisioning(request: dict[str, Any], provisioning: Mapping[str, Any], *, imported: Draft) -> dict[str, Any]:
    """
    Merge provisioning_parameters.json into a request.

    Its file systems become storage configurations of every group: the scripts mount them everywhere.
    """
    for key in sorted(set(provisioning) - LEGACY_KNOWN):
        text = f"{key} of provisioning_parameters.json has no equivalent: {short(provisioning[key])}"
        imported.note("slurm", text, decide=not key.startswith("_"))
    roles = _roles(provisioning, imported)
    groups = []
    for group in request.get("InstanceGroups") or []:
        name = group["InstanceGroupName"]
        path = f"cluster.instance_groups.{name}"
        changed = dict(group)
        if name in roles:
            changed["SlurmConfig"] = roles.pop(name)
        else:
            imported.note(path, "provisioning_parameters.json does not name this group", decide=True)
        changed["InstanceStorageConfigs"] = [*(group.get("InstanceStorageConfigs") or []), *_mounts(provisioning)]
        groups.append(changed)
    for name in roles:
        imported.note("cluster", f"provisioning_parameters.json names group {name}, which the cluster has not")
    orchestrator = request.get("Orchestrator") or {"Slurm": _legacy_strategy(request)}
    return {**request, "InstanceGroups": groups, "Orchestrator": orchestrator}


def _legacy_strategy(request: Mapping[str, Any]) -> dict[str, Any]:
    """
    Merge keeps manual edits of slurm.conf, as the file did; Continuous provisioning accepts no strategy.

    SageMaker guide, sagemaker-hyperpod-slurm-api-config-migration, "Choose a Slurm configuration strategy".
    """
    return {} if request.get("NodeProvisioningMode") == "Continuous" else {"SlurmConfigStrategy": "Merge"}


def _roles(provisioning: Mapping[str, Any], imported: Draft) -> dict[str, dict[str, Any]]:
    roles: dict[str, dict[str, Any]] = {}
    for key, node_type in (("controller_group", "Controller"), ("login_group", "Login")):
        if provisioning.get(key):
            roles[provisioning[key]] = {"NodeType": node_type}
    for worker in provisioning.get("worker_groups") or []:
        name, given = worker["instance_group_name"], worker.get("partition_name") or "dev"
        partition = re.sub(r"[^a-zA-Z0-9]+", "-", given).strip("-")
        if partition != given:
            path = f"cluster.instance_groups.{name}.slurm.partition"
            text = f"was {given}, which the API does not accept as a partition: change job files that name it"
            imported.note(path, text)
        roles[name] = {"NodeType": "Compute", "PartitionNames": [partition]}
        for key in sorted(set(worker) - {"instance_group_name", "partition_name"}):
            text = f"{key} of its worker group has no equivalent: {short(worker[key])}"
            imported.note(f"cluster.instance_groups.{name}", text, decide=not key.startswith("_"))
    return roles


def _mounts(provisioning: Mapping[str, Any]) -> list[dict[str, Any]]:
    configs: list[dict[str, Any]] = []
    if provisioning.get("fsx_dns_name"):
        lustre = {"DnsName": provisioning["fsx_dns_name"], "MountName": provisioning.get("fsx_mountname", "")}
        configs.append({"FsxLustreConfig": {**lustre, "MountPath": "/fsx"}})
    if provisioning.get("fsx_openzfs_dns_name"):
        configs.append({"FsxOpenZfsConfig": {"DnsName": provisioning["fsx_openzfs_dns_name"], "MountPath": "/home"}})
    return configs

"""From what AWS answered, or what AWS's samples say, to an environment file that provisions the same."""

import json
import re
from collections.abc import Mapping
from typing import Any

from holdfast.importing._groups import instance_group, restricted_group, restricted_lustre
from holdfast.importing._imported import Imported
from holdfast.importing._lifecycle import lifecycle, own_settings, shared_mode
from holdfast.importing._network import network, new_network
from holdfast.importing._observed import Observed
from holdfast.importing._orchestrator import eks, slurm
from holdfast.importing._request import request_of, with_provisioning
from holdfast.importing._storage import storage

OWN_TAGS = ("holdfast:", "aws:")
STAND_IN = "holdfast:stand-in:"
ENVIRONMENT_TAG = "holdfast:environment"
LONGEST_NAME = 24
SOME_ACCOUNT, SOME_REGION = "111122223333", "us-west-2"

REQUEST_KNOWN = frozenset(
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


def from_observed(observed: Observed) -> Imported:
    """The environment of a cluster that AWS described."""
    imported = Imported(document={})
    request = request_of(observed.cluster)
    legacy = observed.files.get("provisioning_parameters.json")
    if legacy is not None:
        request = with_provisioning(request, json.loads(legacy), imported=imported)
    imported.document = {
        **_identity(
            request,
            observed.tags,
            cloud={"cloud": "embedded"} if observed.embedded else {},
            account=observed.account,
            region=observed.region,
            imported=imported,
        ),
        **_encryption(observed),
        "network": network(observed, imported=imported),
        "cluster": _cluster(request, observed.tags, imported),
        **(
            {"eks": eks(observed, imported=imported)}
            if _is_eks(request)
            else slurm(request, observed.stack, imported=imported)
        ),
        "storage": storage(
            groups=request.get("InstanceGroups", []),
            file_systems=observed.file_systems,
            associations=observed.associations,
            stack=observed.stack,
            preload=(own_settings(observed.files) or {}).get("preload"),
            imported=imported,
        ),
        **lifecycle(request, observed.files, imported=imported),
        **_stand_ins(observed.tags),
    }
    if _is_eks(request) and "lustre" in imported.document["storage"]:
        imported.note("storage.lustre", "pods mount it; on which groups they may is not known (mount_lustre)")
    for path, why in observed.unasked:
        imported.note(path, f"not checked, AWS did not answer: {why}", decide=True)
    return _finished(imported, is_ours=ENVIRONMENT_TAG in observed.tags)


def from_samples(
    config: Mapping[str, Any],
    provisioning: Mapping[str, Any] | None = None,
    *,
    region: str | None = None,
    account: str | None = None,
) -> Imported:
    """
    The environment of the files that AWS's samples make a cluster of.

    Args:
        config: cluster-config.json, a request of CreateCluster.
        provisioning: provisioning_parameters.json. Default: the groups of ``config`` say what Slurm makes of them
        region: Default: that of the file system in ``provisioning``, or else to be decided
        account: Default: that of the execution role in ``config``, or else to be decided
    """
    imported = Imported(document={})
    request = dict(config)
    if provisioning is not None:
        request = with_provisioning(request, provisioning, imported=imported)
    region = region or _region_in(provisioning or {}) or _decided("region", SOME_REGION, imported)
    account = account or _account_in(request) or _decided("account", SOME_ACCOUNT, imported)
    tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags") or []}
    vpc = request.get("VpcConfig")
    used = (
        f"subnets {', '.join(vpc['Subnets'])} and groups {', '.join(vpc['SecurityGroupIds'])}" if vpc else "no network"
    )
    imported.document = {
        **_identity(request, tags, cloud={}, account=account, region=region, imported=imported),
        "network": new_network(region, imported=imported, why=f"the configuration names {used}"),
        "cluster": _cluster(request, tags, imported),
        **(_sample_eks(imported) if _is_eks(request) else slurm(request, frozenset(), imported=imported)),
        "storage": storage(
            groups=request.get("InstanceGroups", []),
            file_systems=(),
            associations=(),
            stack=frozenset(),
            preload=None,
            imported=imported,
        ),
        **lifecycle(request, {}, imported=imported),
    }
    return _finished(imported, is_ours=False)


def _identity(
    request: Mapping[str, Any],
    tags: Mapping[str, str],
    *,
    cloud: dict[str, str],
    account: str,
    region: str,
    imported: Imported,
) -> dict[str, Any]:
    name = tags.get(ENVIRONMENT_TAG) or _environment_name(request["ClusterName"])
    if ENVIRONMENT_TAG in tags:
        text = f"the stack holdfast-{name} has this name: deploying this file updates it; take another for a copy"
        imported.note("name", text, decide=True)
    return {"name": name, **cloud, "account": account, "region": region}


def _environment_name(cluster_name: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", cluster_name.lower()).strip("-")
    name = name if name[:1].isalpha() else f"c-{name}"
    return name[:LONGEST_NAME].strip("-")


def _cluster(request: Mapping[str, Any], tags: Mapping[str, str], imported: Imported) -> dict[str, Any]:
    for key in sorted(set(request) - REQUEST_KNOWN):
        imported.note("cluster", f"{key} is left out, the file has no setting for it: {request[key]}")
    name = tags.get(ENVIRONMENT_TAG) or _environment_name(request["ClusterName"])
    groups = request.get("InstanceGroups", [])
    lustre = any(
        "FsxLustreConfig" in config for group in groups for config in group.get("InstanceStorageConfigs") or []
    )
    section: dict[str, Any] = {"name": request["ClusterName"]} if request["ClusterName"] != name else {}
    section["node_recovery"] = request.get("NodeRecovery", "Automatic")
    if request.get("NodeProvisioningMode"):
        section["node_provisioning_mode"] = request["NodeProvisioningMode"]
    scaling = request.get("AutoScaling") or {}
    if scaling.get("Mode") == "Enable":
        section["auto_scaler"] = scaling.get("AutoScalerType", "Karpenter")
    tiered = request.get("TieredStorageConfig") or {}
    if tiered.get("Mode") == "Enable":
        section["tiered_storage"] = {"memory_percentage": tiered.get("InstanceMemoryAllocationPercentage", 20)}
    own = {key: value for key, value in tags.items() if not key.startswith(OWN_TAGS)}
    if own:
        section["tags"] = own
    mode = shared_mode(request)
    section["instance_groups"] = [
        instance_group(group, imported=imported, lustre=lustre, shared_mode=mode) for group in groups
    ]
    imported.note("cluster.instance_groups", "which nodes of a group are spares is not known; instance_count has all")
    restricted = request.get("RestrictedInstanceGroups") or []
    if restricted:
        section["restricted_instance_groups"] = [restricted_group(group, imported=imported) for group in restricted]
    shared = (request.get("RestrictedInstanceGroupsConfig") or {}).get("SharedEnvironmentConfig") or {}
    if shared:
        section["restricted_environment"] = _restricted_environment(shared)
    return section


def _restricted_environment(shared: Mapping[str, Any]) -> dict[str, Any]:
    lustre = restricted_lustre(shared.get("FSxLustreConfig"))
    policy = shared.get("FSxLustreDeletionPolicy", "Keep")
    return {**({"lustre": lustre} if lustre else {}), "lustre_deletion_policy": policy}


def _is_eks(request: Mapping[str, Any]) -> bool:
    return "Eks" in (request.get("Orchestrator") or {})


def _sample_eks(imported: Imported) -> dict[str, Any]:
    imported.note(
        "eks", "the configuration does not say the Kubernetes version; a new control plane is made", decide=True
    )
    return {"eks": {"kubernetes_version": "1.34"}}


def _encryption(observed: Observed) -> dict[str, Any]:
    if not observed.customer_keys:
        return {}
    key = sorted(observed.customer_keys)[0]
    created = any(each in observed.stack for each in (key, key.rpartition("/")[2]))
    return {"encryption": {"kms_key": "create" if created else key}}


def _stand_ins(tags: Mapping[str, str]) -> dict[str, Any]:
    found = {key.removeprefix(STAND_IN): value for key, value in sorted(tags.items()) if key.startswith(STAND_IN)}
    return {"stand_ins": found} if found else {}


def _region_in(provisioning: Mapping[str, Any]) -> str | None:
    for key in ("fsx_dns_name", "fsx_openzfs_dns_name"):
        found = re.fullmatch(r"[^.]+\.fsx\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?", provisioning.get(key) or "")
        if found:
            return found[1]
    return None


def _account_in(request: Mapping[str, Any]) -> str | None:
    for group in request.get("InstanceGroups") or []:
        found = re.match(r"arn:aws[a-z-]*:iam::(\d{12}):role/", group.get("ExecutionRole") or "")
        if found:
            return found[1]
    return None


def _decided(path: str, value: str, imported: Imported) -> str:
    imported.note(path, "not known from the configuration; say it", decide=True)
    return value


def _finished(imported: Imported, *, is_ours: bool) -> Imported:
    imported.note("", "images, observability, goodput and allowances are Holdfast's own: they have their defaults")
    if not is_ours:
        text = (
            "a cluster of this name is not made while another one has it: take another name, or delete that one first"
        )
        imported.note("cluster", text)
        imported.note("cluster.instance_groups", "execution roles are made anew; grant them what yours allowed beside")
    return imported

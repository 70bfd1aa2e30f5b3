"""Environment files from AWS's answers, or from AWS's samples."""

import json
import re
from collections.abc import Mapping, Set
from typing import Any

from holdfast.importing.account import ObservedCluster
from holdfast.importing.conversion.location import account_of, evidence, region_of
from holdfast.importing.conversion.request import with_provisioning
from holdfast.importing.draft import Draft, KeptParts, Part, ask_about_values
from holdfast.importing.sections import (
    LEGACY_FILE,
    Scripts,
    cluster,
    eks,
    existing_eks,
    in_zones,
    named_network,
    network,
    new_network,
    slurm,
    storage,
    zones_of_our_own,
)
from holdfast.validation.imports import origin_of, request_of

STAND_IN = "holdfast:stand-in:"
ENVIRONMENT_TAG = "holdfast:environment"
LONGEST_NAME = 24
INSIGHTS_LOGS = "/aws/containerinsights/"


def from_observed(observed: ObservedCluster, *, create: Set[Part] = frozenset()) -> Draft:
    """
    Environment of a described cluster.

    Args:
        create: Parts to create instead of using the existing ones. Default: none
    """
    imported = Draft(document={}, as_it_was=str(origin_of(observed.cluster)))
    request = request_of(observed.cluster)
    keeping = KeptParts(stack=observed.stack, create=frozenset(create))
    legacy = _legacy(observed, imported)
    if legacy is not None:
        request = with_provisioning(request, legacy, imported=imported)
    scripts = Scripts(request, observed.files, keeping)
    name = observed.tags.get(ENVIRONMENT_TAG) or _environment_name(request["ClusterName"])
    if ENVIRONMENT_TAG in observed.tags:
        text = f"the stack holdfast-{name} has this name: deploying this file updates it; take another for a copy"
        imported.note("name", text, decide=True)
    imported.document = {
        "name": name,
        **({"cloud": "embedded"} if observed.embedded else {}),
        "account": observed.account,
        "region": observed.region,
        **_encryption(observed, keeping),
        "network": network(observed, keeping=keeping, imported=imported),
        "cluster": cluster(
            request, observed.tags, environment=name, scripts=scripts, keeping=keeping, imported=imported
        ),
        **(
            {"eks": eks(observed, keeping=keeping, imported=imported)}
            if _is_eks(request)
            else slurm(request, observed.stack, extensions=observed.extensions, imported=imported)
        ),
        "storage": storage(
            groups=request.get("InstanceGroups") or [],
            file_systems=observed.file_systems,
            associations=observed.associations,
            region=observed.region,
            keeping=keeping,
            preload=(scripts.ours or {}).get("preload"),
            imported=imported,
        ),
        **scripts.section(legacy=legacy is not None, imported=imported),
        **_stand_ins(observed.tags),
        **_observability(request, keeping, imported),
    }
    if "additional_availability_zones" in imported.document["network"]:
        in_zones(imported.document["cluster"]["instance_groups"], zones_of_our_own(observed))
    if _is_eks(request) and "lustre" in imported.document["storage"]:
        imported.note("storage.lustre", "pods mount it; on which groups they may is not known (mount_lustre)")
    for path, why in observed.unasked:
        imported.note(path, f"not checked, AWS did not answer: {why}", decide=True)
    return _finished(imported, keeping, is_ours=ENVIRONMENT_TAG in observed.tags)


def from_samples(
    config: Mapping[str, Any],
    provisioning: Mapping[str, Any] | None = None,
    *,
    region: str | None = None,
    account: str | None = None,
    likely_region: str | None = None,
    create: Set[Part] = frozenset(),
) -> Draft:
    """
    Environment of the files of AWS's samples.

    Args:
        config: A request of CreateCluster.
        provisioning: provisioning_parameters.json. Default: the groups of ``config`` have their Slurm settings
        region: Default: that of the resources in the files
        account: Default: that of the execution roles
        likely_region: Region of a command without --region. Default: unknown
        create: Parts to create instead of using the existing ones. Default: none
    """
    imported = Draft(document={})
    request, keeping = dict(config), KeptParts(create=frozenset(create))
    found = list(evidence({**request, **(provisioning or {})}))
    region = region_of(found, given=region, likely=likely_region, imported=imported)
    account = account_of(found, given=account, imported=imported)
    if provisioning is not None:
        request = with_provisioning(request, provisioning, imported=imported)
    tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags") or []}
    name = _environment_name(request["ClusterName"])
    scripts = Scripts(request, {}, keeping)
    imported.document = {
        "name": name,
        "account": account,
        "region": region,
        "network": _sample_network(request, region, keeping, imported),
        "cluster": cluster(request, tags, environment=name, scripts=scripts, keeping=keeping, imported=imported),
        **(
            _sample_eks(request, keeping, imported)
            if _is_eks(request)
            else slurm(request, frozenset(), imported=imported)
        ),
        "storage": storage(
            groups=request.get("InstanceGroups") or [],
            file_systems=(),
            associations=(),
            region=region,
            keeping=keeping,
            preload=None,
            imported=imported,
        ),
        **scripts.section(legacy=provisioning is not None, imported=imported),
        **_observability(request, keeping, imported),
    }
    return _finished(imported, keeping, is_ours=False)


def _legacy(observed: ObservedCluster, imported: Draft) -> dict[str, Any] | None:
    """provisioning_parameters.json beside the scripts, where Slurm is not configured through the API."""
    text = observed.files.get(LEGACY_FILE)
    if text is None or observed.cluster.get("Orchestrator"):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    imported.note(
        "slurm", f"{LEGACY_FILE} beside the scripts is not a JSON object: what Slurm makes of groups", decide=True
    )
    return None


def _environment_name(cluster_name: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", cluster_name.lower()).strip("-")
    name = name if name[:1].isalpha() else f"c-{name}"
    return name[:LONGEST_NAME].strip("-")


def _sample_network(request: Mapping[str, Any], region: str, keeping: KeptParts, imported: Draft) -> dict[str, Any]:
    vpc = request.get("VpcConfig")
    if not vpc:
        why = "the configuration names no network, so that HyperPod would put nodes into one of its own"
        return new_network(region, imported=imported, why=why)
    if keeping.keeps("network"):
        return named_network(vpc, imported=imported)
    used = f"subnets {', '.join(vpc['Subnets'])} and groups {', '.join(vpc['SecurityGroupIds'])}"
    return new_network(region, imported=imported, why=f"the configuration names {used}")


def _is_eks(request: Mapping[str, Any]) -> bool:
    return "Eks" in (request.get("Orchestrator") or {})


def _sample_eks(request: Mapping[str, Any], keeping: KeptParts, imported: Draft) -> dict[str, Any]:
    if keeping.keeps("eks"):
        return {"eks": existing_eks(request["Orchestrator"]["Eks"]["ClusterArn"], imported=imported)}
    imported.note(
        "eks", "the configuration does not say the Kubernetes version; a new control plane is made", decide=True
    )
    return {"eks": {"kubernetes_version": "1.34"}}


def _observability(request: Mapping[str, Any], keeping: KeptParts, imported: Draft) -> dict[str, Any]:
    if not _is_eks(request) or not keeping.keeps("eks", request["Orchestrator"]["Eks"]["ClusterArn"]):
        return {}
    if any(each.startswith(INSIGHTS_LOGS) for each in keeping.stack):
        return {}
    text = "Container Insights is for the owner of the EKS cluster to install; its log groups may be there already"
    imported.note("observability.container_insights", text)
    return {"observability": {"container_insights": False}}


def _encryption(observed: ObservedCluster, keeping: KeptParts) -> dict[str, Any]:
    made = [each for each in observed.file_systems if not keeping.keeps("storage", each["FileSystemId"])]
    keys = sorted({each.get("KmsKeyId", "") for each in made} & observed.customer_keys)
    if not keys:
        return {}
    return {"encryption": {"kms_key": "create" if keeping.owns(keys[0]) else keys[0]}}


def _stand_ins(tags: Mapping[str, str]) -> dict[str, Any]:
    found = {key.removeprefix(STAND_IN): value for key, value in sorted(tags.items()) if key.startswith(STAND_IN)}
    return {"stand_ins": found} if found else {}


def _finished(imported: Draft, keeping: KeptParts, *, is_ours: bool) -> Draft:
    imported.note(
        "",
        "images, observability, health, lending, goodput and allowances are Holdfast's own: they have their defaults",
    )
    if not is_ours:
        text = (
            "a cluster of this name is not made while another one has it: take another name, or delete that one first"
        )
        imported.note("cluster", text)
        if keeping.keeps("roles"):
            text = "the roles of nodes that are there are used; what they may do is theirs"
        else:
            text = "execution roles are created; grant them the further permissions of yours"
        imported.note("cluster.instance_groups", text)
    ask_about_values(imported)
    return imported

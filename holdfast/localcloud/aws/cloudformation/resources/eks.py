# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    GenericHandler,
    Made,
    Properties,
    ResourceContext,
    ResourceError,
    ignore_gone,
    tag_pairs,
)
from holdfast.localcloud.kubernetes.addons import stand_in

LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
VERSION_SETTINGS = frozenset({"Version", "ReleaseVersion", "LaunchTemplate", "ForceUpdateEnabled"})


def _logging(properties: Properties) -> dict[str, Any]:
    listed = properties.get("Logging", {}).get("ClusterLogging", {}).get("EnabledTypes", [])
    enabled = [entry["Type"] for entry in listed]
    disabled = [name for name in LOG_TYPES if name not in enabled]
    entries = [{"types": enabled, "enabled": True}, {"types": disabled, "enabled": False}]
    return {"clusterLogging": [entry for entry in entries if entry["types"]]}


class EksClusterHandler(GenericHandler):
    """A control plane. The service takes one kind of change per call."""

    elsewhere = frozenset({"Logging", "Version", "Force"})

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        result = super().arguments(verb, {key: value for key, value in properties.items() if key != "Logging"})
        return {**result, **({"logging": _logging(properties)} if "Logging" in properties else {})}

    def found(self, description: Mapping[str, Any], properties: Properties) -> dict[str, Any]:
        cluster = description.get("cluster", description)
        provider = (cluster.get("encryptionConfig") or [{}])[0].get("provider", {})
        known = {
            "Arn": cluster.get("arn"),
            "CertificateAuthorityData": cluster.get("certificateAuthority", {}).get("data"),
            "CertificateAuthority.Data": cluster.get("certificateAuthority", {}).get("data"),
            "ClusterSecurityGroupId": cluster.get("resourcesVpcConfig", {}).get("clusterSecurityGroupId"),
            "EncryptionConfigKeyArn": provider.get("keyArn", ""),
            "Endpoint": cluster.get("endpoint"),
            "Id": cluster.get("id"),
            "OpenIdConnectIssuerUrl": cluster.get("identity", {}).get("oidc", {}).get("issuer"),
        }
        return {key: value for key, value in known.items() if value is not None}

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        name, client = made.physical_id, context.client("eks")
        changed = [key for key in sorted(properties.keys() | old.keys()) if properties.get(key) != old.get(key)]
        self.refuse(self.unsettable("update", properties, old), "change")
        for key in changed:
            if key == "Version":
                client.update_cluster_version(name=name, version=properties[key])
            elif key == "Logging":
                client.update_cluster_config(name=name, logging=_logging(properties))
            elif key not in ("Tags", "Force"):
                value = properties.get(key)
                before = old.get(key)
                if isinstance(value, dict) and isinstance(before, dict):
                    value = {inner: item for inner, item in value.items() if before.get(inner) != item}
                client.update_cluster_config(name=name, **self.arguments("update", {key: value}))
            self.wait(context, made, properties)
        if "Tags" in changed:
            self.retag(context, made, tag_pairs(properties.get("Tags")), tag_pairs(old.get("Tags")))
        return self.read(context, made, properties)


class Addon(GenericHandler):
    """An add-on; keeping its software is an argument of the deletion."""

    elsewhere = frozenset({"PreserveOnDelete"})

    def read(self, context: ResourceContext, made: Made, properties: Properties) -> Made:
        """Name in the remark an add-on without stand-in, where Kubernetes runs."""
        found, machine, name = super().read(context, made, properties), context.machine, str(properties["AddonName"])
        if machine is None or stand_in(name) or not machine.runs(str(properties["ClusterName"])):
            return found
        return replace(found, remark=f"add-on {name} is recorded only: the local cluster has no stand-in for it")

    def judge(self, description: Mapping[str, Any], status: str, made: Made) -> None:
        """Fail for a degraded add-on, which never becomes stable: CloudFormation gives up."""
        super().judge(description, status, made)
        if status == "DEGRADED":
            issues = description.get("health", {}).get("issues", [])
            reported = "; ".join(f"{issue['code']}: {issue['message']}" for issue in issues)
            raise ResourceError(f"{made.physical_id} did not stabilize: it is DEGRADED. {reported}")

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        result = super().identity(verb, made, properties)
        keep = {"preserve": True} if verb == "delete" and properties.get("PreserveOnDelete") else {}
        return {**result, **keep}


class AccessEntry(GenericHandler):
    elsewhere = frozenset({"AccessPolicies"})

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        client = context.client("eks")
        where = {"clusterName": properties["ClusterName"], "principalArn": properties["PrincipalArn"]}
        before = {policy["PolicyArn"]: policy for policy in old.get("AccessPolicies", [])}
        after = {policy["PolicyArn"]: policy for policy in properties.get("AccessPolicies", [])}
        for arn in before.keys() - after.keys():
            ignore_gone(client.disassociate_access_policy, policyArn=arn, **where)
        for arn, policy in after.items():
            if before.get(arn) != policy:
                scope = {key.lower(): value for key, value in policy["AccessScope"].items()}
                client.associate_access_policy(policyArn=arn, accessScope=scope, **where)


class PodIdentityAssociation(GenericHandler):
    """A pod identity association: Ref is its ARN, the API wants cluster and id."""

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        return {"clusterName": properties["ClusterName"], "associationId": made.physical_id.rsplit("/", 1)[-1]}


class Nodegroup(GenericHandler):
    """A node group: its settings and its software are changed by different operations."""

    elsewhere = VERSION_SETTINGS | {"Labels", "Taints"}

    def found_id(self, response: Mapping[str, Any], properties: Properties) -> str:
        group = response["nodegroup"]
        return f"{group['clusterName']}/{group['nodegroupName']}"

    def found(self, description: Mapping[str, Any], properties: Properties) -> dict[str, Any]:
        group = description.get("nodegroup", description)
        known = {"ClusterName": group["clusterName"], "NodegroupName": group["nodegroupName"]}
        return {**known, "Arn": group["nodegroupArn"], "Id": "/".join(known.values())}

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        cluster, _, name = made.physical_id.partition("/")
        return {"clusterName": cluster, "nodegroupName": name}

    def update_arguments(
        self, made: Made, properties: Properties, old: Properties, changed: set[str]
    ) -> dict[str, Any] | None:
        simple = {key: properties[key] for key in changed - VERSION_SETTINGS - {"Labels", "Taints"}}
        result = self.arguments("update", simple)
        if "Labels" in changed:
            before, after = old.get("Labels", {}), properties.get("Labels", {})
            gone = sorted(before.keys() - after.keys())
            result["labels"] = {"addOrUpdateLabels": after, **({"removeLabels": gone} if gone else {})}
        if "Taints" in changed:
            before, after = _taints(old), _taints(properties)
            kept = {(taint["key"], taint["effect"]) for taint in after}
            gone = [taint for taint in before if (taint["key"], taint["effect"]) not in kept]
            result["taints"] = {"addOrUpdateTaints": after, **({"removeTaints": gone} if gone else {})}
        return {**result, **self.identity("update", made, properties)} if result else None

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        changed = {key for key in VERSION_SETTINGS if old and properties.get(key) != old.get(key)}
        if changed - {"ForceUpdateEnabled"}:
            self.wait(context, made, properties)
            names = {"Version": "version", "ReleaseVersion": "releaseVersion"}
            desired = {names[key]: properties[key] for key in changed if key in names and key in properties}
            if "LaunchTemplate" in properties:
                template = properties["LaunchTemplate"]
                desired["launchTemplate"] = {key[0].lower() + key[1:]: value for key, value in template.items()}
            context.client("eks").update_nodegroup_version(
                **desired, force=bool(properties.get("ForceUpdateEnabled")), **self.identity("update", made, properties)
            )


def _taints(properties: Properties) -> list[dict[str, str]]:
    return [{key.lower(): value for key, value in taint.items()} for taint in properties.get("Taints", [])]

"""
Amazon EKS: clusters, add-ons, node groups, access entries and pod identity associations.

A cluster has a real control plane where the control plane beside the embedded AWS offers one; else it is a record, as
node groups always are.
"""
# ruff: noqa: N803 - arguments bear the names of the API members

import copy
import secrets
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import Plane, RecordStore, now, paged, principal_of
from holdfast.localcloud.aws.eks import errors
from holdfast.localcloud.aws.eks.access import API_MODES, AccessEntries
from holdfast.localcloud.aws.eks.addons import Addons
from holdfast.localcloud.aws.eks.clusters import CREATOR, EksClusters
from holdfast.localcloud.aws.eks.network import ClusterNetwork
from holdfast.localcloud.aws.eks.nodegroups import Nodegroups
from holdfast.localcloud.aws.eks.nodes import make_log_group
from holdfast.localcloud.aws.eks.pod_identities import PodIdentities
from holdfast.localcloud.aws.iam import Rights
from holdfast_common import KubernetesClient

VERSIONS = ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36")
"""Versions of CreateCluster: ``KubernetesVersion`` of aws-cdk-lib 2.275.0, read 2026-11-20."""

DEFAULT_VERSION = "1.35"
NO_AUTHORITY = "ZW1iZWRkZWQ="
CHANGEABLE = {
    "resourcesVpcConfig": "VpcConfigUpdate",
    "logging": "LoggingUpdate",
    "accessConfig": "AccessConfigUpdate",
    "upgradePolicy": "UpgradePolicyUpdate",
    "zonalShiftConfig": "ZonalShiftConfigUpdate",
    "computeConfig": "AutoModeUpdate",
    "kubernetesNetworkConfig": "AutoModeUpdate",
    "storageConfig": "AutoModeUpdate",
    "remoteNetworkConfig": "RemoteNetworkConfigUpdate",
    "deletionProtection": "DeletionProtectionUpdate",
    "controlPlaneScalingConfig": "ControlPlaneScalingConfigUpdate",
}
"""Changes of UpdateClusterConfig, with the type of the update. One type per call, as in the service."""


class Eks:
    PARTS: ClassVar[dict[str, type]] = {
        "addons": Addons,
        "nodegroups": Nodegroups,
        "access": AccessEntries,
        "identities": PodIdentities,
    }

    def __init__(
        self,
        *,
        client: ClientFactory,
        account: str,
        region: str,
        plane: Plane,
        reach: Callable[[dict[str, Any]], KubernetesClient | None] = lambda _: None,
    ) -> None:
        """``reach`` returns the API server of a cluster, with all rights, by its description. Default: none."""
        self.on_change: Callable[[], None] = lambda: None
        self.account, self.region, self._plane = account, region, plane
        self._client = client
        self._network = ClusterNetwork(client=client)
        self._clusters = EksClusters(client=client, account=account, region=region)
        self.nodegroups = Nodegroups(clusters=self._clusters)
        self.addons = Addons(
            clusters=self._clusters,
            nodegroups=self.nodegroups,
            client=client,
            kubernetes=lambda name: reach(self.describe_cluster(name=name)["cluster"]) if self.runs(name) else None,
        )
        self.access = AccessEntries(clusters=self._clusters, client=client)
        self.identities = PodIdentities(clusters=self._clusters, client=client)
        plane.join_eks(self)

    def create_cluster(
        self,
        *,
        name: str,
        roleArn: str,
        resourcesVpcConfig: dict[str, Any],
        version: str = DEFAULT_VERSION,
        tags: dict[str, str] | None = None,
        clientRequestToken: str = "",  # noqa: ARG002 - the name makes a repetition visible
        **settings: Any,
    ) -> dict[str, Any]:
        if version not in VERSIONS:
            raise errors.invalid_parameter(
                f"unsupported Kubernetes version {version}; supported: {', '.join(VERSIONS)}"
            )
        with self._clusters.lock:
            self._clusters.refuse_taken(name)
        self._clusters.check_role(roleArn)
        self._check_key(roleArn, settings.get("encryptionConfig", ()))
        placed = self._network.place(name, resourcesVpcConfig)
        if "outpostConfig" in settings:
            raise errors.invalid_parameter("outpostConfig is not available in the embedded AWS.")
        with self._clusters.lock:
            self._clusters.refuse_taken(name)
            content = self._described(name, roleArn, placed, version, tags or {}, settings)
            if self._plane.kubernetes:
                content |= {"awaits": "CREATING"}
                del content["endpoint"], content["certificateAuthority"]
            self._clusters.shelf.add(name, content)
            self._admit_creator(content)
            made = {"cluster": self._clusters.shown(name)}
        self._plane.changed()
        if any(one.get("enabled") for one in settings.get("logging", {}).get("clusterLogging", ())):
            make_log_group(self._client, f"/aws/eks/{name}/cluster")  # EKS user guide, control-plane-logs
        return made

    def runs(self, name: str) -> str:
        """Return the Kubernetes version that really runs behind a cluster; "" for a record."""
        return self._clusters.runs(name)

    def describe_cluster(self, *, name: str) -> dict[str, Any]:
        with self._clusters.lock:
            return {"cluster": self._clusters.shown(name)}

    def list_clusters(
        self,
        *,
        maxResults: int | None = None,
        nextToken: str | None = None,
        include: list[str] | None = None,  # noqa: ARG002 - there are no connected clusters
    ) -> dict[str, Any]:
        with self._clusters.lock:
            names = sorted(name for name, _ in self._clusters.shelf.items())
        return paged("clusters", names, maxResults, nextToken)

    def update_cluster_version(
        self, *, name: str, version: str, force: bool = False, clientRequestToken: str = "", **unsupported: Any
    ) -> dict[str, Any]:
        del force, clientRequestToken  # nothing here blocks an upgrade, and a repetition is refused as no change
        if unsupported:
            raise errors.invalid_parameter(f"{next(iter(unsupported))} is not available in the embedded AWS.")
        with self._clusters.lock:
            record = self._clusters.active(name)
            before = record.content["version"]
            if version not in VERSIONS:
                raise errors.invalid_parameter(f"unsupported Kubernetes version update from {before} to {version}")
            step = VERSIONS.index(version) - VERSIONS.index(before)
            if step == 0:
                raise errors.invalid_parameter(
                    f"Cluster is already at the desired configuration with version: {version}"
                )
            if step != 1:
                raise errors.invalid_parameter(
                    f"Unsupported Kubernetes minor version update from {before} to {version}"
                )
            record.content["version"] = version
            record.begin("UPDATING")
            return {"update": self._clusters.update("VersionUpdate", {"Version": version})}

    def update_cluster_config(
        self,
        *,
        name: str,
        clientRequestToken: str = "",  # noqa: ARG002 - a repetition is refused as no change
        **changes: Any,
    ) -> dict[str, Any]:
        unknown = sorted(changes.keys() - CHANGEABLE.keys())
        if unknown:
            raise errors.invalid_parameter(f"{unknown[0]} is not available in the embedded AWS.")
        kinds = {CHANGEABLE[key] for key in changes}
        if len(kinds) != 1:
            raise errors.invalid_parameter("Only one type of update can be allowed.")
        if "resourcesVpcConfig" in changes:
            self._network.check_change(changes["resourcesVpcConfig"])
        with self._clusters.lock:
            content = copy.deepcopy(self._clusters.active(name).content)
            for key, value in changes.items():
                content[key] = {**content.get(key, {}), **value} if isinstance(value, dict) else value
            self._network.check_endpoints(content["resourcesVpcConfig"])
            record = self._clusters.active(name)
            if content == record.content:
                raise errors.invalid_parameter("No changes needed for the requested configuration.")
            record.content = content
            self._admit_creator(content)
            record.begin("UPDATING")
            return {"update": self._clusters.update(kinds.pop(), {})}

    def delete_cluster(self, *, name: str) -> dict[str, Any]:
        with self._clusters.lock:
            record = self._clusters.shelf.get(name)
            if record.content.get("deletionProtection"):
                raise errors.invalid_request(
                    "Cluster deletion protection is enabled. Disable deletion protection before deleting the cluster."
                )
            if any(owner == name for (owner, _), _ in self.nodegroups.shelf.items()):
                raise errors.in_use("Cluster has nodegroups attached")
            for shelf in (self.addons.shelf, self.access.entries, self.identities.shelf):
                for key in [key for key, _ in shelf.items() if key[0] == name]:
                    shelf.forget(key)
            is_real = self._clusters.is_real(record)
            record.begin("DELETING")
            if is_real:  # until its control plane is gone
                record.until = datetime.max.replace(tzinfo=UTC)
            shown, group = self._clusters.shown(name), record.content["resourcesVpcConfig"]["clusterSecurityGroupId"]
        if is_real:
            self._plane.changed()
        else:
            self._network.release(group)
        return {"cluster": shown}

    def became(self, body: dict[str, Any]) -> None:
        """Record the state of a cluster's control plane. Raise ServiceError if there is no such cluster."""
        name = str(body["arn"]).rpartition("/")[2]
        with self._clusters.lock:
            record = self._clusters.shelf.get(name)
            content, group = record.content, record.content["resourcesVpcConfig"]["clusterSecurityGroupId"]
            if body["status"] == "Deleted":
                self._clusters.shelf.forget(name)
            elif not record.leaving:
                record.until = now()
                content["awaits"] = "" if body["status"] == "ACTIVE" else body["status"]
                content["runs"] = body["runs"]
                identity = content["identity"]["oidc"]["issuer"].rpartition("/")[2]
                content["endpoint"] = body["endpoint"] or self._nowhere(identity)
                content["certificateAuthority"] = {"data": body["authority"] or NO_AUTHORITY}
                if body["message"]:
                    content["health"] = {"issues": [{"code": "InternalFailure", "message": body["message"]}]}
        if body["status"] == "Deleted":
            self._network.release(group)
        self.on_change()

    def describe_update(self, *, name: str, updateId: str, **_: Any) -> dict[str, Any]:
        with self._clusters.lock:
            self._clusters.shelf.get(name)
            if updateId not in self._clusters.updates:
                raise errors.missing(f"No update found for id: {updateId}")
            return {"update": dict(self._clusters.updates[updateId])}

    def tag_resource(self, *, resourceArn: str, tags: dict[str, str]) -> dict[str, Any]:
        with self._clusters.lock:
            self._tagged(resourceArn)["tags"].update(tags)
        return {}

    def untag_resource(self, *, resourceArn: str, tagKeys: list[str]) -> dict[str, Any]:
        with self._clusters.lock:
            for key in tagKeys:
                self._tagged(resourceArn)["tags"].pop(key, None)
        return {}

    def list_tags_for_resource(self, *, resourceArn: str) -> dict[str, Any]:
        with self._clusters.lock:
            return {"tags": dict(self._tagged(resourceArn)["tags"])}

    def state(self) -> dict[str, Any]:
        with self._clusters.lock:
            kept = {name: shelf.dump() for name, shelf in self._shelves().items()}
            return {**kept, "updates": copy.deepcopy(self._clusters.updates)}

    def restore(self, state: dict[str, Any]) -> None:
        with self._clusters.lock:
            for name, shelf in self._shelves().items():
                shelf.load(state[name])
            self._clusters.updates = state["updates"]

    def _shelves(self) -> dict[str, RecordStore]:
        return {
            "clusters": self._clusters.shelf,
            "addons": self.addons.shelf,
            "nodegroups": self.nodegroups.shelf,
            "entries": self.access.entries,
            "identities": self.identities.shelf,
        }

    def _described(
        self,
        name: str,
        role: str,
        placed: dict[str, Any],
        version: str,
        tags: dict[str, str],
        settings: dict[str, Any],
    ) -> dict[str, Any]:
        identity = secrets.token_hex(16).upper()
        access = {
            "bootstrapClusterCreatorAdminPermissions": True,
            "authenticationMode": "CONFIG_MAP",
            **settings.pop("accessConfig", {}),
        }
        network = {
            "serviceIpv4Cidr": "10.100.0.0/16" if not placed["cidr"].startswith("10.") else "172.20.0.0/16",
            "ipFamily": "ipv4",
            **settings.pop("kubernetesNetworkConfig", {}),
        }
        settings.pop("bootstrapSelfManagedAddons", None)
        return {
            CREATOR: principal_of(self._clusters.account),
            "name": name,
            "arn": self._clusters.arn("cluster", name),
            "createdAt": now(),
            "version": version,
            "endpoint": self._nowhere(identity),
            "roleArn": role,
            "resourcesVpcConfig": placed["config"],
            "kubernetesNetworkConfig": network,
            "logging": {"clusterLogging": []},
            "identity": {"oidc": {"issuer": f"https://oidc.eks.{self._clusters.region}.amazonaws.com/id/{identity}"}},
            "certificateAuthority": {"data": NO_AUTHORITY},
            "platformVersion": "eks.1",
            "accessConfig": access,
            "upgradePolicy": {"supportType": "EXTENDED"},
            "deletionProtection": False,
            "health": {"issues": []},
            "tags": dict(tags),
            **settings,
        }

    def _admit_creator(self, content: dict[str, Any]) -> None:
        access = content["accessConfig"]
        creator = content.pop(CREATOR, "")
        if creator and access["authenticationMode"] not in API_MODES:
            content[CREATOR] = creator
        elif creator and access["bootstrapClusterCreatorAdminPermissions"]:
            self.access.admit_creator(content["name"], creator)

    def _nowhere(self, identity: str) -> str:
        return f"https://{identity}.gr7.{self._clusters.region}.eks.amazonaws.com"

    def _check_key(self, role: str, encryption: Iterable[dict[str, Any]]) -> None:
        """
        Reject a role that cannot use the key of Kubernetes' data.

        Source: grants of aws-cdk-lib's eks.Cluster; time of the check and words are assumed.
        """
        for key in (one["provider"]["keyArn"] for one in encryption):
            rights = Rights(client=self._client, role=role, session="EKS", account=self._clusters.account)
            for action in ("kms:DescribeKey", "kms:Encrypt", "kms:Decrypt", "kms:CreateGrant"):
                reported = rights.to(action, key)
                if not reported.allowed:
                    raise errors.invalid_parameter(f"The cluster role cannot use the key {key}. {reported.reason}")

    def _tagged(self, arn: str) -> dict[str, Any]:
        for shelf in self._shelves().values():
            for record in shelf.values():
                content = record.content
                if arn in (content.get(key) for key in ARNS):
                    return content
        raise errors.missing(f"The specified resource could not be found: {arn}")


ARNS = ("arn", "addonArn", "nodegroupArn", "accessEntryArn", "associationArn")

"""Managed node groups of EKS clusters, as records: no instance is started."""

# ruff: noqa: N803 - arguments bear the names of the API members

import copy
import secrets
from typing import Any

from holdfast.localcloud.aws.common import Record, RecordStore, now, paged
from holdfast.localcloud.aws.eks import errors
from holdfast.localcloud.aws.eks.clusters import EksClusters

SCALING = {"minSize": 1, "maxSize": 2, "desiredSize": 2}


class Nodegroups:
    def __init__(self, *, clusters: EksClusters) -> None:
        self.shelf = RecordStore(lambda key: errors.missing(f"No node group found for name: {key[1]}."))
        self._clusters = clusters

    def create_nodegroup(
        self,
        *,
        clusterName: str,
        nodegroupName: str,
        nodeRole: str,
        subnets: list[str],
        version: str = "",
        tags: dict[str, str] | None = None,
        clientRequestToken: str = "",  # noqa: ARG002 - the name makes a repetition visible
        **settings: Any,
    ) -> dict[str, Any]:
        self._clusters.check_role(nodeRole)
        with self._clusters.lock:
            cluster = self._clusters.active(clusterName).content
            if self.shelf.find((clusterName, nodegroupName)) is not None:
                raise errors.in_use(
                    f"NodeGroup already exists with name {nodegroupName} and cluster name {clusterName}"
                )
            moment, version = now(), version or cluster["version"]
            content = {
                "nodegroupName": nodegroupName,
                "nodegroupArn": self._clusters.arn(
                    "nodegroup", f"{clusterName}/{nodegroupName}/{secrets.token_hex(16)}"
                ),
                "clusterName": clusterName,
                "version": version,
                "releaseVersion": f"{version}.0-20261101",
                "createdAt": moment,
                "modifiedAt": moment,
                "capacityType": "ON_DEMAND",
                "amiType": "AL2023_x86_64_STANDARD",
                "subnets": subnets,
                "nodeRole": nodeRole,
                "resources": {"autoScalingGroups": [{"name": f"eks-{nodegroupName}-{secrets.token_hex(8)}"}]},
                "health": {"issues": []},
                "tags": dict(tags or {}),
                **settings,
                "scalingConfig": {**SCALING, **settings.get("scalingConfig", {})},
            }
            self.shelf.add((clusterName, nodegroupName), content)
            return {"nodegroup": self._shown(clusterName, nodegroupName)}

    def describe_nodegroup(self, *, clusterName: str, nodegroupName: str) -> dict[str, Any]:
        with self._clusters.lock:
            return {"nodegroup": self._shown(clusterName, nodegroupName)}

    def list_nodegroups(
        self, *, clusterName: str, maxResults: int | None = None, nextToken: str | None = None
    ) -> dict[str, Any]:
        with self._clusters.lock:
            names = sorted(name for (cluster, name), _ in self.shelf.items() if cluster == clusterName)
        return paged("nodegroups", names, maxResults, nextToken)

    def update_nodegroup_config(
        self,
        *,
        clusterName: str,
        nodegroupName: str,
        labels: dict[str, Any] | None = None,
        taints: dict[str, Any] | None = None,
        clientRequestToken: str = "",  # noqa: ARG002 - an update is idempotent anyway
        **settings: Any,
    ) -> dict[str, Any]:
        with self._clusters.lock:
            record = self._settled(clusterName, nodegroupName)
            content = record.content
            for key, value in settings.items():
                content[key] = {**content.get(key, {}), **value}
            if labels:
                kept = {**content.get("labels", {}), **labels.get("addOrUpdateLabels", {})}
                content["labels"] = {key: kept[key] for key in kept if key not in labels.get("removeLabels", [])}
            if taints:
                gone = [*taints.get("removeTaints", []), *taints.get("addOrUpdateTaints", [])]
                names = {(taint["key"], taint["effect"]) for taint in gone}
                stay = [taint for taint in content.get("taints", []) if (taint["key"], taint["effect"]) not in names]
                content["taints"] = [*stay, *taints.get("addOrUpdateTaints", [])]
            content["modifiedAt"] = now()
            record.begin("UPDATING")
            return {"update": self._clusters.update("ConfigUpdate", {})}

    def update_nodegroup_version(
        self,
        *,
        clusterName: str,
        nodegroupName: str,
        version: str = "",
        releaseVersion: str = "",
        launchTemplate: dict[str, Any] | None = None,
        force: bool = False,
        clientRequestToken: str = "",
    ) -> dict[str, Any]:
        del force, clientRequestToken  # no pod can block it, and an update is idempotent anyway
        with self._clusters.lock:
            record = self._settled(clusterName, nodegroupName)
            changes = {"version": version, "releaseVersion": releaseVersion, "launchTemplate": launchTemplate}
            record.content |= {key: value for key, value in changes.items() if value} | {"modifiedAt": now()}
            record.begin("UPDATING")
            return {"update": self._clusters.update("VersionUpdate", {"Version": record.content["version"]})}

    def delete_nodegroup(self, *, clusterName: str, nodegroupName: str) -> dict[str, Any]:
        with self._clusters.lock:
            self.shelf.get((clusterName, nodegroupName)).begin("DELETING")
            return {"nodegroup": self._shown(clusterName, nodegroupName)}

    def are_desired(self, cluster: str) -> bool:
        with self._clusters.lock:
            return any(
                name == cluster and not record.leaving and record.content["scalingConfig"]["desiredSize"] > 0
                for (name, _), record in self.shelf.items()
            )

    def _settled(self, cluster: str, name: str) -> Record:
        record = self.shelf.get((cluster, name))
        if record.busy:
            raise errors.in_use(f"Nodegroup cannot be updated as it is currently not in Active State: {record.doing}")
        return record

    def _shown(self, cluster: str, name: str) -> dict[str, Any]:
        record = self.shelf.get((cluster, name))
        return {**copy.deepcopy(record.content), "status": record.status(settled="ACTIVE")}

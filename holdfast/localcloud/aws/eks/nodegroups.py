"""Managed node groups of EKS clusters. They are records: no instance is started."""

# ruff: noqa: N803 - arguments bear the names of the API members

import copy
import secrets
import threading
from collections.abc import Callable
from typing import Any

from holdfast.localcloud.aws.common import Record, Shelf, now, paged
from holdfast.localcloud.aws.eks import errors

SCALING = {"minSize": 1, "maxSize": 2, "desiredSize": 2}


class Nodegroups:
    """The node group operations; `Eks` owns the attributes."""

    _lock: threading.RLock
    _nodegroups: Shelf

    _active: Callable[[str], Record]
    _arn: Callable[[str, str], str]
    _check_role: Callable[[str], None]
    _update: Callable[[str, dict[str, str]], dict[str, Any]]

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
        self._check_role(nodeRole)
        with self._lock:
            cluster = self._active(clusterName).content
            if self._nodegroups.find((clusterName, nodegroupName)) is not None:
                raise errors.in_use(
                    f"NodeGroup already exists with name {nodegroupName} and cluster name {clusterName}"
                )
            moment, version = now(), version or cluster["version"]
            content = {
                "nodegroupName": nodegroupName,
                "nodegroupArn": self._arn("nodegroup", f"{clusterName}/{nodegroupName}/{secrets.token_hex(16)}"),
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
            self._nodegroups.add((clusterName, nodegroupName), content)
            return {"nodegroup": self._shown_nodegroup(clusterName, nodegroupName)}

    def describe_nodegroup(self, *, clusterName: str, nodegroupName: str) -> dict[str, Any]:
        with self._lock:
            return {"nodegroup": self._shown_nodegroup(clusterName, nodegroupName)}

    def list_nodegroups(
        self, *, clusterName: str, maxResults: int | None = None, nextToken: str | None = None
    ) -> dict[str, Any]:
        with self._lock:
            names = sorted(name for (cluster, name), _ in self._nodegroups.items() if cluster == clusterName)
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
        with self._lock:
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
            return {"update": self._update("ConfigUpdate", {})}

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
        with self._lock:
            record = self._settled(clusterName, nodegroupName)
            changes = {"version": version, "releaseVersion": releaseVersion, "launchTemplate": launchTemplate}
            record.content |= {key: value for key, value in changes.items() if value} | {"modifiedAt": now()}
            record.begin("UPDATING")
            return {"update": self._update("VersionUpdate", {"Version": record.content["version"]})}

    def delete_nodegroup(self, *, clusterName: str, nodegroupName: str) -> dict[str, Any]:
        with self._lock:
            self._nodegroups.get((clusterName, nodegroupName)).begin("DELETING")
            return {"nodegroup": self._shown_nodegroup(clusterName, nodegroupName)}

    def _has_nodegroup(self, cluster: str) -> bool:
        with self._lock:
            return any(
                name == cluster and not record.leaving and record.content["scalingConfig"]["desiredSize"] > 0
                for (name, _), record in self._nodegroups.items()
            )

    def _settled(self, cluster: str, name: str) -> Record:
        record = self._nodegroups.get((cluster, name))
        if record.busy:
            raise errors.in_use(f"Nodegroup cannot be updated as it is currently not in Active State: {record.doing}")
        return record

    def _shown_nodegroup(self, cluster: str, name: str) -> dict[str, Any]:
        record = self._nodegroups.get((cluster, name))
        return {**copy.deepcopy(record.content), "status": record.status(settled="ACTIVE")}

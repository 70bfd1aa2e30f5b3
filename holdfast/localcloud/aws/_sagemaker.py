"""Amazon SageMaker HyperPod: the cluster operations of the SageMaker API.

Records change state here; instances come and go elsewhere (the HyperPod control plane, through `_hyperpod_plane`),
or at once when the plane is simulated.

For callers of UpdateCluster, CloudFormation among them: a group that InstanceGroups does not mention stays as it is.
A group is removed only by naming it in InstanceGroupsToDelete; both may be given in one call. An update is over when
the status is InService again (or Failed); if FailureMessage is set then, the update failed and was taken back.
Instance type, Slurm node type, network and capacity kind of an existing group cannot change. While a deletion runs
the status is Deleting; afterwards DescribeCluster answers ResourceNotFound.
"""

# ruff: noqa: N803 - arguments bear the names of the API members

import copy
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

from holdfast.localcloud.aws import _sagemaker_checks as checks
from holdfast.localcloud.aws import _sagemaker_store as store
from holdfast.localcloud.aws._clients import ClientFactory
from holdfast.localcloud.aws._errors import NotOurs, ServiceError
from holdfast.localcloud.aws._hyperpod_plane import Plane
from holdfast.localcloud.aws._paging import between, page, tag_dict, tag_list
from holdfast.localcloud.aws._sagemaker_nodes import NodeOperations

MAX_TAGS = 50
FIXED_GROUP_SETTINGS = ("InstanceType", "InstanceRequirements", "OverrideVpcConfig", "CapacityRequirements")


class SageMaker(NodeOperations):
    """The HyperPod part of SageMaker in one account and region."""

    def __init__(self, *, client: ClientFactory, account: str, region: str, plane: Plane) -> None:
        self.account = account
        self.region = region
        self.on_change: Callable[[], None] = lambda: None
        self._lock = threading.RLock()
        self._clusters: dict[str, store.Cluster] = {}
        self._references = checks.References(client=client)
        self._plane = plane
        plane.join(self)

    def create_cluster(
        self, *, ClusterName: str, Tags: list[dict[str, str]] | None = None, **settings: Any
    ) -> dict[str, Any]:
        groups = _by_name(settings.pop("InstanceGroups", []))
        checks.check_settings(settings, groups)
        self._refuse_taken(ClusterName)
        self._references.check(settings, groups)
        networks = {name: self._references.networks(settings, group) for name, group in groups.items()}
        with self._lock:
            self._refuse_taken(ClusterName)
            cluster = store.Cluster(
                arn=f"arn:aws:sagemaker:{self.region}:{self.account}:cluster/{store.new_cluster_id()}",
                name=ClusterName,
                region=self.region,
                created=store.now(),
                settings={"NodeRecovery": "Automatic", **settings},
                groups=groups,
                tags=tag_dict(Tags),
            )
            for name, group in groups.items():
                self._add_nodes(cluster, name, group["InstanceCount"], networks[name])
            self._clusters[ClusterName] = cluster
            cluster.add_event(kind="Cluster", description="Cluster creation started.")
            self._caller_changed(cluster)
            return {"ClusterArn": cluster.arn}

    def update_cluster(
        self,
        *,
        ClusterName: str,
        InstanceGroups: list[dict[str, Any]] | None = None,
        InstanceGroupsToDelete: list[str] | None = None,
        **settings: Any,
    ) -> dict[str, Any]:
        given = _by_name(InstanceGroups or [])
        leaving = InstanceGroupsToDelete or []
        with self._lock:
            cluster = self._updatable(ClusterName)
            merged = {**cluster.settings, **settings}
            groups = _merge_groups(cluster.groups, given, leaving)
        checks.check_settings(merged, groups)
        self._references.check({**merged, "VpcConfig": None} if not given else merged, given)
        networks = {name: self._references.networks(merged, group) for name, group in given.items()}
        with self._lock:
            cluster = self._updatable(ClusterName)
            groups = _merge_groups(cluster.groups, given, leaving)
            trial = copy.deepcopy(cluster)  # so that an update that cannot be begun changes nothing
            trial.status, trial.failure = "Updating", ""
            trial.previous_groups, trial.groups = copy.deepcopy(cluster.groups), groups
            trial.settings, trial.leaving_groups = merged, list(leaving)
            for name, group in given.items():
                missing = group["InstanceCount"] - len(trial.staying(name))
                self._add_nodes(trial, name, missing, networks[name])
                trial.scale_in(name, group["InstanceCount"])
            for name in leaving:
                trial.scale_in(name, 0)
            trial.add_event(kind="Cluster", description="Cluster update started.")
            self._clusters[cluster.name] = trial
            self._caller_changed(trial)
            return {"ClusterArn": trial.arn}

    def describe_cluster(self, *, ClusterName: str) -> dict[str, Any]:
        with self._lock:
            return store.describe(copy.deepcopy(self._find(ClusterName)))

    def list_clusters(
        self,
        *,
        CreationTimeAfter: datetime | None = None,
        CreationTimeBefore: datetime | None = None,
        MaxResults: int | None = None,
        NameContains: str = "",
        NextToken: str | None = None,
        SortBy: str = "CREATION_TIME",
        SortOrder: str = "Ascending",
        TrainingPlanArn: str = "",
    ) -> dict[str, Any]:
        with self._lock:
            found = [
                cluster
                for cluster in self._clusters.values()
                if NameContains in cluster.name
                and between(cluster.created, CreationTimeAfter, CreationTimeBefore)
                and (not TrainingPlanArn or TrainingPlanArn in _training_plans(cluster))
            ]
            found.sort(
                key=lambda cluster: cluster.name if SortBy == "NAME" else cluster.created.isoformat(),
                reverse=SortOrder == "Descending",
            )
            summaries = [
                {
                    "ClusterArn": cluster.arn,
                    "ClusterName": cluster.name,
                    "CreationTime": cluster.created,
                    "ClusterStatus": cluster.status,
                    "TrainingPlanArns": _training_plans(cluster),
                }
                for cluster in found
            ]
        shown, more = page(summaries, size=MaxResults, token=NextToken)
        return {"ClusterSummaries": shown, **more}

    def delete_cluster(self, *, ClusterName: str) -> dict[str, Any]:
        with self._lock:
            cluster = self._find(ClusterName)
            if cluster.status == "Deleting":
                raise ServiceError("ConflictException", f"Cluster '{cluster.name}' is already being deleted.")
            cluster.status = "Deleting"
            for node in cluster.nodes.values():
                node.request = "delete"
            cluster.add_event(kind="Cluster", description="Cluster deletion started.")
            self._caller_changed(cluster)
            return {"ClusterArn": cluster.arn}

    def add_tags(self, *, ResourceArn: str, Tags: list[dict[str, str]]) -> dict[str, Any]:
        with self._lock:
            cluster = self._tagged(ResourceArn)
            tags = cluster.tags | tag_dict(Tags)
            if len(tags) > MAX_TAGS:
                raise ServiceError("ResourceLimitExceeded", f"A cluster can have at most {MAX_TAGS} tags.")
            cluster.tags = tags
            self._plane.changed()
            return {"Tags": tag_list(tags)}

    def list_tags(
        self, *, ResourceArn: str, NextToken: str | None = None, MaxResults: int | None = None
    ) -> dict[str, Any]:
        with self._lock:
            tags = tag_list(self._tagged(ResourceArn).tags)
        shown, more = page(tags, size=MaxResults, token=NextToken)
        return {"Tags": shown, **more}

    def delete_tags(self, *, ResourceArn: str, TagKeys: list[str]) -> dict[str, Any]:
        with self._lock:
            cluster = self._tagged(ResourceArn)
            cluster.tags = {key: value for key, value in cluster.tags.items() if key not in TagKeys}
            self._plane.changed()
            return {}

    def state(self) -> list[dict[str, Any]]:
        with self._lock:
            return [store.cluster_record(cluster) for cluster in self._clusters.values()]

    def restore(self, state: list[dict[str, Any]]) -> None:
        with self._lock:
            self._clusters = {record["name"]: store.cluster_from(record) for record in state}

    def _tagged(self, arn: str) -> store.Cluster:
        if ":cluster/" not in arn:
            raise NotOurs
        return self._find(arn)

    def _refuse_taken(self, name: str) -> None:
        with self._lock:
            if name in self._clusters:
                raise ServiceError("ResourceInUse", f"Cluster name '{name}' is already in use.")

    def _updatable(self, name: str) -> store.Cluster:
        cluster = self._find(name)
        if cluster.status != "InService":
            raise ServiceError(
                "ConflictException",
                f"Cluster '{cluster.name}' is in {cluster.status} status. It can be updated only when InService.",
            )
        return cluster


def _by_name(specifications: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    groups = {group["InstanceGroupName"]: group for group in specifications}
    if len(groups) != len(specifications):
        raise checks.refuse("InstanceGroups contains duplicate instance group names.")
    return groups


def _merge_groups(
    existing: dict[str, dict[str, Any]], given: dict[str, dict[str, Any]], leaving: list[str]
) -> dict[str, dict[str, Any]]:
    for name in leaving:
        if name not in existing:
            raise checks.refuse(f"Instance group '{name}' in InstanceGroupsToDelete does not exist.")
        if name in given:
            raise checks.refuse(f"Instance group '{name}' is in both InstanceGroups and InstanceGroupsToDelete.")
    for name, group in given.items():
        before = existing.get(name)
        if before is None:
            continue
        for key in FIXED_GROUP_SETTINGS:
            if before.get(key) != group.get(key):
                raise checks.refuse(f"{key} of the existing instance group '{name}' cannot be changed.")
        if before.get("SlurmConfig", {}).get("NodeType") != group.get("SlurmConfig", {}).get("NodeType"):
            raise checks.refuse(f"SlurmConfig.NodeType of the existing instance group '{name}' cannot be changed.")
    return {name: group for name, group in {**existing, **given}.items() if name not in leaving}


def _training_plans(cluster: store.Cluster) -> list[str]:
    return sorted({group["TrainingPlanArn"] for group in cluster.groups.values() if "TrainingPlanArn" in group})

"""
Amazon SageMaker HyperPod: cluster operations of the SageMaker API.

Records change state here; instances are run elsewhere (control plane, through a `Plane`), or simulated.

UpdateCluster: a group that InstanceGroups does not name stays as it is; InstanceGroupsToDelete removes groups; both may
be given. An update is over when the status is InService (or Failed); a FailureMessage then means that it was rolled
back. Instance type, Slurm node type, network and capacity kind of an existing group cannot change. During a deletion
the status is Deleting; then DescribeCluster answers ResourceNotFound.
"""

# ruff: noqa: N803 - arguments bear the names of the API members

import copy
import threading
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any, ClassVar

from holdfast.catalog import bounds
from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import (
    NotOurs,
    Plane,
    RecordStore,
    ServiceError,
    between,
    now,
    page,
    refuse,
    tag_dict,
    tag_list,
)
from holdfast.localcloud.aws.sagemaker import checks, rules, store, views
from holdfast.localcloud.aws.sagemaker.clusters import HyperPodClusters
from holdfast.localcloud.aws.sagemaker.health_checks import HealthChecks
from holdfast.localcloud.aws.sagemaker.moves import NodeMoves
from holdfast.localcloud.aws.sagemaker.nodes import NodeOperations
from holdfast.localcloud.aws.sagemaker.notices import ClusterNotices
from holdfast.localcloud.aws.sagemaker.records import Extensions, Governance, Mlflow
from holdfast.localcloud.aws.sagemaker.software import SoftwareUpdates
from holdfast.localcloud.aws.sagemaker.store import RESTRICTED

MAX_TAGS = bounds("tags").most
FIXED_GROUP_SETTINGS = (
    "InstanceType",
    "InstanceRequirements",
    "OverrideVpcConfig",
    "CapacityRequirements",
    "NetworkInterface",
)


class SageMaker:
    PARTS: ClassVar[dict[str, type]] = {
        "nodes": NodeOperations,
        "health_checks": HealthChecks,
        "software": SoftwareUpdates,
        "moves": NodeMoves,
        "mlflow": Mlflow,
        "governance": Governance,
        "extensions": Extensions,
    }

    def __init__(self, *, client: ClientFactory, account: str, region: str, plane: Plane) -> None:
        self.account = account
        self.region = region
        self._plane = plane
        self._notices = ClusterNotices(client=client)
        self._references = checks.References(client=client, account=account, region=region)
        self._clusters = HyperPodClusters(account=account, region=region, plane=plane, notices=self._notices)
        self.nodes = NodeOperations(clusters=self._clusters, references=self._references)
        self.health_checks = HealthChecks(clusters=self._clusters)
        self.software = SoftwareUpdates(client=client, clusters=self._clusters, references=self._references)
        self.moves = NodeMoves(clusters=self._clusters, references=self._references)
        self.mlflow = Mlflow(client=client, account=account, region=region, lock=self._clusters.lock)
        self.governance = Governance(client=client, account=account, region=region, clusters=self._clusters)
        self.extensions = Extensions(account=account, region=region, clusters=self._clusters)
        plane.join(self._clusters)
        if not plane.simulated:
            # The largest of all service models; whoever creates a cluster need not wait for it.
            threading.Thread(target=client, args=("ec2",), name="clients", daemon=True).start()

    @property
    def on_change(self) -> Callable[[], None]:
        """Callback for changes without a request."""
        return self._clusters.on_change

    @on_change.setter
    def on_change(self, call: Callable[[], None]) -> None:
        self._clusters.on_change = call

    def create_cluster(
        self, *, ClusterName: str, Tags: list[dict[str, str]] | None = None, **settings: Any
    ) -> dict[str, Any]:
        groups = _by_name(settings.pop("InstanceGroups", []), settings.pop("RestrictedInstanceGroups", []))
        rules.check_settings(settings, groups)
        with self._clusters.lock:
            self._clusters.refuse_taken(ClusterName)
        self._references.check(settings, groups)
        networks = {name: self._references.networks(settings, group) for name, group in groups.items()}
        with self._clusters.lock:
            self._clusters.refuse_taken(ClusterName)
            cluster = store.ClusterRecord(
                arn=f"arn:aws:sagemaker:{self.region}:{self.account}:cluster/{store.new_id()}",
                name=ClusterName,
                region=self.region,
                created=now(),
                settings={"NodeRecovery": "Automatic", **settings},
                groups=groups,
                tags=tag_dict(Tags),
            )
            for name, group in groups.items():
                self._clusters.add_nodes(cluster, name, group["InstanceCount"], networks[name])
            self._clusters.by_name[ClusterName] = cluster
            self._clusters.add_event(cluster, kind="Cluster", description="Cluster creation started.")
            self._clusters.caller_changed(cluster)
            return {"ClusterArn": cluster.arn}

    def update_cluster(
        self,
        *,
        ClusterName: str,
        InstanceGroups: list[dict[str, Any]] | None = None,
        RestrictedInstanceGroups: list[dict[str, Any]] | None = None,
        InstanceGroupsToDelete: list[str] | None = None,
        **settings: Any,
    ) -> dict[str, Any]:
        given = _by_name(InstanceGroups or [], RestrictedInstanceGroups or [])
        leaving = InstanceGroupsToDelete or []
        with self._clusters.lock:
            cluster = self._clusters.updatable(ClusterName)
            merged = _merged(cluster.settings, settings)
            groups = _merge_groups(cluster.groups, given, leaving)
        rules.check_settings(merged, groups)
        self._references.check({**merged, "VpcConfig": None} if not given else merged, given)
        networks = {name: self._references.networks(merged, group) for name, group in given.items()}
        with self._clusters.lock:
            cluster = self._clusters.updatable(ClusterName)
            groups = _merge_groups(cluster.groups, given, leaving)
            trial = copy.deepcopy(cluster)  # so that an update that cannot be begun changes nothing
            trial.status, trial.failure = "Updating", ""
            trial.previous_groups, trial.groups = copy.deepcopy(cluster.groups), groups
            trial.settings, trial.leaving_groups = merged, list(leaving)
            for name, group in given.items():
                missing = group["InstanceCount"] - len(trial.staying(name))
                self._clusters.add_nodes(trial, name, missing, networks[name])
                trial.scale_in(name, group["InstanceCount"])
            for name in leaving:
                trial.scale_in(name, 0)
            self._clusters.add_event(trial, kind="Cluster", description="Cluster update started.")
            self._clusters.by_name[cluster.name] = trial
            self._clusters.caller_changed(trial)
            return {"ClusterArn": trial.arn}

    def describe_cluster(self, *, ClusterName: str) -> dict[str, Any]:
        with self._clusters.lock:
            return views.describe(copy.deepcopy(self._clusters.find(ClusterName)))

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
        with self._clusters.lock:
            found = [
                cluster
                for cluster in self._clusters.by_name.values()
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
        with self._clusters.lock:
            cluster = self._clusters.find(ClusterName)
            if cluster.status == "Deleting":
                raise ServiceError("ConflictException", f"Cluster '{cluster.name}' is already being deleted.")
            cluster.status = "Deleting"
            for node in cluster.nodes.values():
                node.request = "delete"
            self._clusters.add_event(cluster, kind="Cluster", description="Cluster deletion started.")
            self._clusters.caller_changed(cluster)
            return {"ClusterArn": cluster.arn}

    def add_tags(self, *, ResourceArn: str, Tags: list[dict[str, str]]) -> dict[str, Any]:
        with self._clusters.lock:
            tags = self._tagged(ResourceArn)
            added = tags | tag_dict(Tags)
            if len(added) > MAX_TAGS:
                raise ServiceError("ResourceLimitExceeded", f"A resource can have at most {MAX_TAGS} tags.")
            tags.update(added)
            self._plane.changed()
            return {"Tags": tag_list(added)}

    def list_tags(
        self, *, ResourceArn: str, NextToken: str | None = None, MaxResults: int | None = None
    ) -> dict[str, Any]:
        with self._clusters.lock:
            tags = tag_list(self._tagged(ResourceArn))
        shown, more = page(tags, size=MaxResults, token=NextToken)
        return {"Tags": shown, **more}

    def delete_tags(self, *, ResourceArn: str, TagKeys: list[str]) -> dict[str, Any]:
        with self._clusters.lock:
            tags = self._tagged(ResourceArn)
            for key in TagKeys:
                tags.pop(key, None)
            self._plane.changed()
            return {}

    def close(self) -> None:
        self._notices.close()

    def state(self) -> dict[str, Any]:
        with self._clusters.lock:
            clusters = [asdict(cluster) for cluster in self._clusters.by_name.values()]
            return {"clusters": clusters, **{name: shelf.dump() for name, shelf in self._shelves().items()}}

    def restore(self, state: dict[str, Any]) -> None:
        with self._clusters.lock:
            self._clusters.by_name = {record["name"]: store.cluster_from(record) for record in state["clusters"]}
            for name, shelf in self._shelves().items():
                shelf.load(state[name])

    def _shelves(self) -> dict[str, RecordStore]:
        return {
            "apps": self.mlflow.apps,
            "schedulers": self.governance.schedulers,
            "quotas": self.governance.quotas,
            "extensions": self.extensions.records,
        }

    def _tagged(self, arn: str) -> dict[str, str]:
        if ":cluster/" in arn:
            return self._clusters.find(arn).tags
        for shelf in self._shelves().values():
            for record in shelf.values():
                if arn in record.content.values():
                    tags: dict[str, str] = record.content["Tags"]
                    return tags
        raise NotOurs


def _by_name(plain: list[dict[str, Any]], restricted: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    listed = [*plain, *({**group, RESTRICTED: True} for group in restricted)]
    groups = {group["InstanceGroupName"]: group for group in listed}
    if len(groups) != len(listed):
        raise refuse("InstanceGroups contains duplicate instance group names.")
    return groups


def _merged(before: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    old, new = before.get("Orchestrator"), changes.get("Orchestrator")
    if new is not None and (old is None or old.keys() != new.keys() or ("Eks" in old and old != new)):
        raise refuse("The orchestrator of an existing cluster cannot be changed.")
    return {**before, **changes}


def _merge_groups(
    existing: dict[str, dict[str, Any]], given: dict[str, dict[str, Any]], leaving: list[str]
) -> dict[str, dict[str, Any]]:
    for name in leaving:
        if name not in existing:
            raise refuse(f"Instance group '{name}' in InstanceGroupsToDelete does not exist.")
        if name in given:
            raise refuse(f"Instance group '{name}' is in both InstanceGroups and InstanceGroupsToDelete.")
    for name, group in given.items():
        before = existing.get(name)
        if before is None:
            continue
        if (RESTRICTED in before) != (RESTRICTED in group):
            raise refuse(f"Instance group '{name}' cannot change between restricted and unrestricted.")
        for key in FIXED_GROUP_SETTINGS:
            if before.get(key) != group.get(key):
                raise refuse(f"{key} of the existing instance group '{name}' cannot be changed.")
        if before.get("SlurmConfig", {}).get("NodeType") != group.get("SlurmConfig", {}).get("NodeType"):
            raise refuse(f"SlurmConfig.NodeType of the existing instance group '{name}' cannot be changed.")
    return {name: group for name, group in {**existing, **given}.items() if name not in leaving}


def _training_plans(cluster: store.ClusterRecord) -> list[str]:
    return sorted({group["TrainingPlanArn"] for group in cluster.groups.values() if "TrainingPlanArn" in group})

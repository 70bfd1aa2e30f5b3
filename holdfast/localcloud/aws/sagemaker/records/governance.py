"""HyperPod task governance: scheduler configurations and compute quotas of clusters on EKS. Records only."""

# ruff: noqa: N803 - arguments bear the names of the API members

import copy
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import Record, RecordStore, ServiceError, now, page, tag_dict
from holdfast.localcloud.aws.sagemaker.clusters import HyperPodClusters
from holdfast.localcloud.aws.sagemaker.store import new_id

STATUS = {"CREATING": "Creating", "UPDATING": "Updating", "DELETING": "Deleting"}
ADDON = "amazon-sagemaker-hyperpod-taskgovernance"
SETTLED = {"CREATING": "Created", "UPDATING": "Updated"}


def _missing(key: Any) -> ServiceError:
    return ServiceError("ResourceNotFound", f"Could not find the governance resource {key}.")


class Governance:
    def __init__(self, *, client: ClientFactory, account: str, region: str, clusters: HyperPodClusters) -> None:
        self.schedulers, self.quotas = RecordStore(_missing), RecordStore(_missing)
        self._client, self._account, self._region, self._clusters = client, account, region, clusters

    def create_cluster_scheduler_config(
        self, *, ClusterArn: str, Tags: list[dict[str, str]] | None = None, **settings: Any
    ) -> dict[str, Any]:
        with self._clusters.lock:
            for record in self.schedulers.values():
                if record.content["ClusterArn"] == ClusterArn:
                    raise ServiceError("ConflictException", f"The cluster {ClusterArn} already has a scheduler config.")
        return self._govern(self.schedulers, "ClusterSchedulerConfig", ClusterArn, settings, Tags)

    def describe_cluster_scheduler_config(
        self,
        *,
        ClusterSchedulerConfigId: str,
        ClusterSchedulerConfigVersion: int = 0,  # noqa: ARG002 - the latest is kept
    ) -> dict[str, Any]:
        with self._clusters.lock:
            return described(self.schedulers.get(ClusterSchedulerConfigId))

    def list_cluster_scheduler_configs(
        self, *, ClusterArn: str = "", MaxResults: int | None = None, NextToken: str | None = None, **_: Any
    ) -> dict[str, Any]:
        found = self._governing(self.schedulers, ClusterArn)
        shown, more = page(found, size=MaxResults, token=NextToken)
        return {"ClusterSchedulerConfigSummaries": shown, **more}

    def update_cluster_scheduler_config(
        self, *, ClusterSchedulerConfigId: str, TargetVersion: int, **changes: Any
    ) -> dict[str, Any]:
        record = self.schedulers.get(ClusterSchedulerConfigId)
        return self._regovern(record, "ClusterSchedulerConfig", TargetVersion, changes)

    def delete_cluster_scheduler_config(self, *, ClusterSchedulerConfigId: str) -> None:
        with self._clusters.lock:
            self.schedulers.get(ClusterSchedulerConfigId).begin("DELETING")

    def create_compute_quota(
        self, *, ClusterArn: str, Tags: list[dict[str, str]] | None = None, **settings: Any
    ) -> dict[str, Any]:
        settings = {"ActivationState": "Enabled", **settings}
        return self._govern(self.quotas, "ComputeQuota", ClusterArn, settings, Tags)

    def describe_compute_quota(
        self,
        *,
        ComputeQuotaId: str,
        ComputeQuotaVersion: int = 0,  # noqa: ARG002 - the latest is kept
    ) -> dict[str, Any]:
        with self._clusters.lock:
            return described(self.quotas.get(ComputeQuotaId))

    def list_compute_quotas(
        self, *, ClusterArn: str = "", MaxResults: int | None = None, NextToken: str | None = None, **_: Any
    ) -> dict[str, Any]:
        shown, more = page(self._governing(self.quotas, ClusterArn), size=MaxResults, token=NextToken)
        return {"ComputeQuotaSummaries": shown, **more}

    def update_compute_quota(self, *, ComputeQuotaId: str, TargetVersion: int, **changes: Any) -> dict[str, Any]:
        return self._regovern(self.quotas.get(ComputeQuotaId), "ComputeQuota", TargetVersion, changes)

    def delete_compute_quota(self, *, ComputeQuotaId: str) -> None:
        with self._clusters.lock:
            self.quotas.get(ComputeQuotaId).begin("DELETING")

    def _check_governed(self, eks: str) -> None:
        """
        Check that the add-on of task governance exists.

        Source: SageMaker developer guide, sagemaker-hyperpod-eks-operate-console-ui-governance-setup; words are
        assumed.
        """
        try:
            named = {"clusterName": eks.rsplit("/", 1)[-1], "addonName": ADDON}
            status = self._client("eks").describe_addon(**named)["addon"]["status"]
        except ClientError:
            status = "missing"
        if status not in ("ACTIVE", "UPDATING"):
            raise ServiceError(
                "ValidationException", f"The EKS add-on {ADDON} of {eks} is {status}. It must be ACTIVE."
            )

    def _govern(
        self,
        shelf: RecordStore,
        kind: str,
        cluster_arn: str,
        settings: dict[str, Any],
        tags: list[dict[str, str]] | None,
    ) -> dict[str, Any]:
        with self._clusters.lock:
            cluster = self._clusters.find(cluster_arn)
            eks = cluster.settings.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn", "")
        if not eks:
            raise ServiceError("ValidationException", f"Cluster {cluster.name} is not orchestrated by EKS.")
        self._check_governed(eks)
        with self._clusters.lock:
            name = new_id()
            path = {"ClusterSchedulerConfig": "cluster-scheduler-config", "ComputeQuota": "compute-quota"}[kind]
            named = {
                f"{kind}Arn": f"arn:aws:sagemaker:{self._region}:{self._account}:{path}/{name}",
                f"{kind}Id": name,
            }
            moment = now()
            shelf.add(
                name,
                {
                    **named,
                    f"{kind}Version": 1,
                    "ClusterArn": cluster_arn,
                    "CreationTime": moment,
                    "LastModifiedTime": moment,
                    **settings,
                    "Tags": tag_dict(tags),
                },
            )
            return named

    def _regovern(self, record: Record, kind: str, version: int, changes: dict[str, Any]) -> dict[str, Any]:
        with self._clusters.lock:
            content = record.content
            if version != content[f"{kind}Version"]:
                raise ServiceError(
                    "ConflictException", f"TargetVersion is {version}, the latest is {content[f'{kind}Version']}."
                )
            content |= {**changes, f"{kind}Version": version + 1, "LastModifiedTime": now()}
            record.begin("UPDATING")
            return {f"{kind}Arn": content[f"{kind}Arn"], f"{kind}Version": version + 1}

    def _governing(self, shelf: RecordStore, cluster_arn: str) -> list[dict[str, Any]]:
        with self._clusters.lock:
            shown = [described(record) for _, record in shelf.items()]
        return [one for one in shown if cluster_arn in ("", one["ClusterArn"])]


def described(record: Record) -> dict[str, Any]:
    content = {key: value for key, value in copy.deepcopy(record.content).items() if key != "Tags"}
    status = record.status(settled=SETTLED.get(record.doing, ""))
    return {**content, "Status": STATUS.get(status, status)}
